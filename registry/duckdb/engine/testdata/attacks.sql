-- The base of the attacks.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (a INT, b VARCHAR, c DOUBLE, ts TIMESTAMP, l INT[], s STRUCT(x INT, y VARCHAR));
INSERT INTO t SELECT i, 'x' || i, i / 2, TIMESTAMP '2020-01-01' + to_days(i), [i, i + 1], {'x': i, 'y': 'z'} FROM range(10) r(i);
CREATE TABLE u (a INT, d INT);
INSERT INTO u SELECT i, i * i FROM range(10) r(i);
CREATE TABLE wide AS SELECT 1 AS c0, 2 AS c1;
CREATE MACRO twice(x) AS x + x;
CREATE MACRO doubled(x) AS TABLE SELECT * FROM t WHERE a = x UNION ALL SELECT * FROM t WHERE a = x;
CREATE MACRO four(x) AS twice(twice(x));
