-- Level 1: the lake's relations, cleaned once, so that nobody has to do it again.

CREATE OR REPLACE VIEW departures AS
SELECT
  make_date(year, month, day) AS day,
  time_hour                   AS scheduled_hour,
  carrier,
  flight                      AS flight_number,
  tailnum,
  origin,
  dest,
  distance                    AS miles,
  dep_delay                   AS delay,
  arr_delay                   AS arrival_delay,
  dep_time IS NULL            AS cancelled
FROM flights;

CREATE OR REPLACE VIEW carriers AS
SELECT carrier, name AS carrier_name FROM airlines;

-- A column list names the output, whatever the query calls it.
CREATE OR REPLACE VIEW conditions (origin, scheduled_hour, temperature_c, wind_knots, rain_inches, visibility_miles) AS
SELECT origin, time_hour, celsius(temp), round(wind_speed * 0.868976, 1), precip, visib
FROM weather;

CREATE OR REPLACE VIEW fleet AS
SELECT tailnum, manufacturer, model, seats, engines, year AS built, 2013 - year AS age_in_2013
FROM planes;

CREATE OR REPLACE VIEW destinations AS
SELECT faa AS dest, name AS airport, lat AS latitude, lon AS longitude FROM airports;
