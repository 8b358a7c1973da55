CREATE VIEW revenue AS
SELECT l_shipmode, count(*) AS lines, sum(l_extendedprice * (1 - l_discount)) AS price FROM lineitem GROUP BY ALL;
