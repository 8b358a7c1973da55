-- SSB Q2.3, as the benchmark words it.
CREATE VIEW answer AS
SELECT d_year, p_brand1, sum(lo_revenue) AS revenue
FROM lineorder, date, part, supplier
WHERE lo_orderdate = d_datekey
  AND lo_partkey = p_partkey
  AND lo_suppkey = s_suppkey
  AND p_brand1 = 'MFGR#2239'
  AND s_region = 'EUROPE'
GROUP BY d_year, p_brand1
ORDER BY d_year, p_brand1;
