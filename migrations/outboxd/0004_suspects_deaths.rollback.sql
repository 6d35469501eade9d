ALTER TABLE suspects DROP COLUMN last_death;
