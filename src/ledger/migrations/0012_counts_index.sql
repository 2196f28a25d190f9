-- Counted letters need no index to be counted by. By itself: it waits for everyone who reads, and nobody should wait for more.
DROP INDEX redrive.dead_letter_counts;
