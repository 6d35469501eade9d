-- Sales by day: counters, which show at once when an event is counted twice.

CREATE TABLE daily_sales (
    day         date    NOT NULL,
    currency    char(3) NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    orders      bigint  NOT NULL CHECK (orders >= 0),
    total_minor bigint  NOT NULL CHECK (total_minor >= 0),
    PRIMARY KEY (day, currency)
) WITH (
    fillfactor = 50 -- the same few rows change with every order: keep their versions in one page
);

COMMENT ON TABLE daily_sales IS 'How many orders were made on a day, and what they cost together.';
COMMENT ON COLUMN daily_sales.day IS 'In UTC, by the time of the event, not of its arrival.';
COMMENT ON COLUMN daily_sales.total_minor IS 'In the minor unit of currency (cents).';
