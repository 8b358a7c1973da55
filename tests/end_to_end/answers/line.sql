CREATE VIEW late_shipments AS
SELECT date_trunc('month', l_shipdate) AS month,
  CASE l_shipmode WHEN 'REG AIR' THEN 'AIR' WHEN 'FOB' THEN 'SHIP' ELSE l_shipmode END AS l_shipmode,
  count(*) AS lines, sum(l_shipdate - l_commitdate) AS days, sum(l_extendedprice * (1 - l_discount)) AS price
FROM lineitem WHERE l_shipdate > l_commitdate GROUP BY ALL;
