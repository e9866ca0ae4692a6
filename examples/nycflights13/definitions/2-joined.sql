-- Level 2: departures with what explains them.

CREATE OR REPLACE VIEW departures_in_weather AS
SELECT d.*, c.temperature_c, c.wind_knots, c.rain_inches, c.visibility_miles
FROM departures d JOIN conditions c USING (origin, scheduled_hour);

CREATE OR REPLACE VIEW departures_by_plane AS
SELECT d.day, d.carrier, d.delay, d.miles, f.manufacturer, f.model, f.seats, f.age_in_2013
FROM departures d JOIN fleet f USING (tailnum);

CREATE OR REPLACE VIEW report.daily AS
SELECT
  day,
  carrier,
  count(*)                           AS departures,
  count(*) FILTER (WHERE cancelled)  AS cancellations,
  round(avg(delay), 1)               AS mean_delay,
  count(*) FILTER (WHERE delay > 60) AS over_an_hour_late
FROM main.departures
GROUP BY day, carrier;
