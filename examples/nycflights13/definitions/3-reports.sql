-- Levels 3 and 4: what people look at. Inside the schema report, daily means report.daily.

CREATE OR REPLACE VIEW report.by_carrier AS
SELECT
  carrier_name,
  sum(departures)::BIGINT                                        AS departures,
  sum(cancellations)::BIGINT                                     AS cancellations,
  round(sum(mean_delay * departures) / sum(departures), 1)       AS mean_delay,
  round(100 * sum(over_an_hour_late) / sum(departures), 1)       AS percent_over_an_hour_late
FROM daily JOIN carriers USING (carrier)
GROUP BY carrier_name;

CREATE OR REPLACE VIEW report.worst_carriers AS
SELECT carrier_name, mean_delay, percent_over_an_hour_late
FROM by_carrier
WHERE departures >= 1000
ORDER BY percent_over_an_hour_late DESC
LIMIT 5;

CREATE OR REPLACE VIEW report.by_wind AS
SELECT
  CASE WHEN wind_knots < 5 THEN '0 to 5' WHEN wind_knots < 15 THEN '5 to 15' ELSE '15 and more' END AS knots,
  count(*)             AS departures,
  round(avg(delay), 1) AS mean_delay
FROM departures_in_weather
WHERE delay IS NOT NULL AND wind_knots IS NOT NULL
GROUP BY knots;

CREATE OR REPLACE VIEW report.routes AS
SELECT d.origin, d.dest, a.airport, count(*) AS departures, round(avg(d.arrival_delay), 1) AS mean_arrival_delay
FROM departures d JOIN destinations a USING (dest)
GROUP BY d.origin, d.dest, a.airport;

CREATE OR REPLACE VIEW report.by_manufacturer AS
SELECT manufacturer, count(*) AS departures, round(avg(age_in_2013), 1) AS mean_age, round(avg(delay), 1) AS mean_delay
FROM departures_by_plane
GROUP BY manufacturer
HAVING count(*) >= 100;

-- A table macro of the base.
CREATE OR REPLACE VIEW report.hours_lost_at_jfk AS
SELECT dest, round(sum(dep_delay) / 60, 1) AS hours_lost
FROM late_from('JFK', 60)
GROUP BY dest;
