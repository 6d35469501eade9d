DROP TABLE effects;
DROP TABLE sent_emails;
