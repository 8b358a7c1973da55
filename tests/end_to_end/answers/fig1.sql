-- The balanced butterfly over PartSupp and Supplier; TPC-H's own rows have no NULLs to quarantine.
CREATE VIEW _partsupp AS SELECT *, ps_availqty * ps_supplycost AS ps_totalcost FROM partsupp;
CREATE VIEW _supplier AS SELECT * REPLACE ('+' || replace(s_phone, '-', ' ') AS s_phone) FROM supplier;
CREATE VIEW joined AS SELECT * FROM _partsupp JOIN _supplier ON ps_suppkey = s_suppkey;
CREATE VIEW view_1 AS SELECT s_nationkey, ps_partkey, sum(ps_totalcost) AS total_cost, sum(ps_availqty) AS quantity,
  count(*) AS suppliers FROM joined GROUP BY ALL;
CREATE VIEW view_2 AS SELECT ps_partkey, sum(ps_totalcost) AS total_cost, sum(ps_availqty) AS quantity,
  count(*) AS suppliers FROM joined GROUP BY ALL;
CREATE VIEW view_3 AS SELECT s_nationkey, s_suppkey, sum(ps_totalcost) AS total_cost, count(*) AS parts FROM joined GROUP BY ALL;
CREATE VIEW view_4 AS SELECT s_suppkey, sum(ps_totalcost) AS total_cost, count(*) AS parts FROM joined GROUP BY ALL;
