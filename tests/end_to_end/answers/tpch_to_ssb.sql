-- SSB's tables by SQL over TPC-H: every five customers and suppliers become one.
CREATE VIEW _nations AS SELECT * FROM nation JOIN region ON n_regionkey = r_regionkey;
CREATE VIEW _customer AS
SELECT CAST((c_custkey + 4) // 5 AS INTEGER) AS c_custkey, c_name, left(c_address, 25) AS c_address,
  rpad(left(n_name, 9), 9, ' ') || right(c_phone, 1) AS c_city, n_name AS c_nation, r_name AS c_region, c_phone, c_mktsegment
FROM customer JOIN _nations ON c_nationkey = n_nationkey WHERE c_custkey % 5 = 1;
CREATE VIEW _supplier AS
SELECT CAST((s_suppkey + 4) // 5 AS INTEGER) AS s_suppkey, s_name, left(s_address, 25) AS s_address,
  rpad(left(n_name, 9), 9, ' ') || right(s_phone, 1) AS s_city, n_name AS s_nation, r_name AS s_region, s_phone
FROM supplier JOIN _nations ON s_nationkey = n_nationkey WHERE s_suppkey % 5 = 1;
CREATE VIEW _part AS
SELECT p_partkey, split_part(p_name, ' ', 1) || ' ' || split_part(p_name, ' ', 2) AS p_name,
  'MFGR#' || right(p_mfgr, 1) AS p_mfgr, 'MFGR#' || right(p_brand, 2) AS p_category,
  'MFGR#' || right(p_brand, 2) || CAST(CAST('0x' || left(md5(p_name), 8) AS BIGINT) % 40 + 1 AS VARCHAR) AS p_brand1,
  split_part(p_name, ' ', 3) AS p_color, p_type, p_size, p_container
FROM part;
CREATE VIEW date AS
SELECT CAST(strftime(day, '%Y%m%d') AS INTEGER) AS d_datekey, strftime(day, '%B %-d, %Y') AS d_date,
  strftime(day, '%A') AS d_dayofweek, strftime(day, '%B') AS d_month, year(day) AS d_year,
  CAST(strftime(day, '%Y%m') AS INTEGER) AS d_yearmonthnum, strftime(day, '%b%Y') AS d_yearmonth,
  dayofweek(day) + 1 AS d_daynuminweek, day(day) AS d_daynuminmonth, dayofyear(day) AS d_daynuminyear,
  month(day) AS d_monthnuminyear, (dayofyear(day) - 1) // 7 + 1 AS d_weeknuminyear,
  ['Winter', 'Winter', 'Winter', 'Spring', 'Summer', 'Summer', 'Summer', 'Summer', 'Fall', 'Fall', 'Christmas',
   'Christmas'][month(day)] AS d_sellingseason,
  CAST(CAST(dayofweek(day) = 6 AS INTEGER) AS VARCHAR) AS d_lastdayinweekfl,
  CAST(CAST(day = last_day(day) AS INTEGER) AS VARCHAR) AS d_lastdayinmonthfl,
  CAST(CAST(strftime(day, '%m-%d') IN ('01-01', '02-20', '04-20', '05-20', '07-20', '08-20', '09-20', '10-20', '11-20',
    '12-24') AS INTEGER) AS VARCHAR) AS d_holidayfl,
  CAST(CAST(dayofweek(day) BETWEEN 1 AND 5 AS INTEGER) AS VARCHAR) AS d_weekdayfl
FROM (SELECT CAST(unnest(range(DATE '1992-01-01', DATE '1998-12-31', INTERVAL 1 DAY)) AS DATE) AS day);
CREATE VIEW lineorder AS
SELECT l_orderkey AS lo_orderkey, l_linenumber AS lo_linenumber, (o_custkey + 4) // 5 AS lo_custkey,
  l_partkey AS lo_partkey, (l_suppkey + 4) // 5 AS lo_suppkey, CAST(strftime(o_orderdate, '%Y%m%d') AS INTEGER) AS lo_orderdate,
  o_orderpriority AS lo_orderpriority, CAST(o_shippriority AS VARCHAR) AS lo_shippriority, CAST(l_quantity AS INTEGER) AS lo_quantity,
  CAST(l_extendedprice * 100 AS INTEGER) AS lo_extendedprice, CAST(o_totalprice * 100 AS INTEGER) AS lo_ordtotalprice,
  CAST(l_discount * 100 AS INTEGER) AS lo_discount,
  CAST(l_extendedprice * 100 AS BIGINT) * (100 - CAST(l_discount * 100 AS BIGINT)) // 100 AS lo_revenue,
  CAST(ps_supplycost * 100 AS INTEGER) AS lo_supplycost, CAST(l_tax * 100 AS INTEGER) AS lo_tax,
  CAST(strftime(l_commitdate, '%Y%m%d') AS INTEGER) AS lo_commitdate, l_shipmode AS lo_shipmode
FROM lineitem JOIN orders ON l_orderkey = o_orderkey
  JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey;
