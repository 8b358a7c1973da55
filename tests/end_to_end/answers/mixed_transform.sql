-- A checksum is over each value behind its length.
CREATE MACRO _part(value) AS length(CAST(value AS VARCHAR)) || ':' || value;
CREATE VIEW _orders AS
SELECT *, lower(trim(regexp_replace(o_comment, '\s+', ' ', 'g'))) AS text FROM orders;
CREATE VIEW events AS
SELECT 'ordered' AS kind, o_orderdate AS day, o_orderkey AS number, CAST(o_totalprice AS DECIMAL(18,4)) AS amount,
  o_orderpriority[3:] AS about, regexp_matches(text, 'special.*(packages|requests|deposits)') AS special,
  levenshtein(left(text, 24), 'carefully final deposits') AS likeness,
  sha256(_part(o_orderkey) || ',' || _part(o_clerk) || ',' || _part(text)) AS fingerprint
FROM _orders
UNION ALL
SELECT 'shipped', l_shipdate, l_orderkey, l_extendedprice * (1 - l_discount), l_shipmode,
  regexp_matches(l_comment, '(furious|quick).*(packages|requests|deposits)'),
  levenshtein(left(l_comment, 24), 'carefully final deposits'),
  sha256(_part(l_orderkey) || ',' || _part(l_linenumber) || ',' || _part(l_comment))
FROM lineitem;
CREATE VIEW days AS
SELECT day, kind, sum(amount) AS amount, count(*) AS events, 100 * count_if(special) // count(*) AS share,
  sha256(_part(day) || ',' || _part(kind) || ',' || _part(min(fingerprint))) AS mark, strftime(day, '%Y-%m-%d') AS week,
  strftime(day, '%a') AS weekday
FROM events GROUP BY day, kind;
CREATE VIEW numbers AS
SELECT number, sum(amount) AS amount, count(*) AS events, min(likeness) AS likeness, max(day) AS last_day,
  sha256(_part(number) || ',' || _part(max(fingerprint))) AS mark,
  upper(left(md5(reverse(mark)), 8)) AS short_mark
FROM events GROUP BY number;
