// Package rowtext turns the rows of Arrow record batches into text: JSON arrays,
// JSON objects and CSV lines.
//
// The rules are those that a client sees:
//
//   - A number that a JSON reader could round is a string: integers beyond 2^53,
//     HUGEINT and DECIMAL of any size, and the floats that JSON has no word for
//     ("NaN", "Infinity", "-Infinity").
//   - Dates, times, timestamps and intervals are strings in the form that the
//     engine itself prints: 2013-01-01 05:00:00, with +00 behind it when the type
//     has a time zone. All times are UTC.
//   - A BLOB is a string in base64.
//   - A LIST is an array, a STRUCT an object, a MAP an array of
//     {"key":...,"value":...} in its order, since its keys need not be strings.
//   - In CSV, NULL is nothing at all and the empty string is "". Nested values are
//     their JSON text.
package rowtext
