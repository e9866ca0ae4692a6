-- What every node has before any DDL: the lake's files as relations, and two macros.
-- Paths are relative to the first --lake folder.

CREATE VIEW flights  AS SELECT * FROM read_parquet('flights.parquet');
CREATE VIEW weather  AS SELECT * FROM read_parquet('weather.parquet');
CREATE VIEW planes   AS SELECT * FROM read_parquet('planes.parquet');
CREATE VIEW airports AS SELECT * FROM read_parquet('airports.parquet');
CREATE VIEW airlines AS SELECT * FROM read_parquet('airlines.parquet');

-- Fahrenheit to degrees Celsius.
CREATE MACRO celsius(fahrenheit) AS round((fahrenheit - 32) / 1.8, 1);

-- The flights that left an airport late by so many minutes or more.
CREATE MACRO late_from(airport, minutes) AS TABLE
  SELECT * FROM flights WHERE origin = airport AND dep_delay >= minutes;
