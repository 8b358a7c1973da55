CREATE VIEW lookup_part AS SELECT p_partkey, row_number() OVER (ORDER BY p_partkey) AS part_sk FROM part;
CREATE VIEW lookup_supplier AS SELECT s_suppkey, row_number() OVER (ORDER BY s_suppkey) AS supplier_sk FROM supplier;
CREATE VIEW lookup_orders AS SELECT o_orderkey, row_number() OVER (ORDER BY o_orderkey) AS orders_sk FROM orders;
CREATE VIEW lineitem_fact AS
SELECT orders_sk, l_linenumber, part_sk, supplier_sk, l_quantity, l_extendedprice * (1 - l_discount) AS price,
  CAST(l_extendedprice * (1 - l_discount) * (1 + l_tax) AS DECIMAL(18,4)) AS charge, l_receiptdate - l_shipdate AS days,
  l_shipdate, l_shipmode
FROM lineitem JOIN lookup_part ON l_partkey = p_partkey JOIN lookup_supplier ON l_suppkey = s_suppkey
  JOIN lookup_orders ON l_orderkey = o_orderkey;
