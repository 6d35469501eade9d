-- Suspects: a death counts once, however often it is recorded.

ALTER TABLE suspects ADD COLUMN last_death uuid;

COMMENT ON COLUMN suspects.last_death IS
    'The process that last died with this message in work. Recording its death again changes nothing.';
