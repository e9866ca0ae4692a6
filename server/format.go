package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/server/internal/rowtext"
)

// The forms of a query's answer.
const (
	TypeJSON   = "application/json"
	TypeNDJSON = "application/x-ndjson"
	TypeCSV    = "text/csv"
	TypeArrow  = "application/vnd.apache.arrow.stream"
)

// negotiate picks the form that the client likes best; JSON when it does not mind.
func negotiate(r *http.Request) (string, *Problem) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return TypeJSON, nil
	}
	best, weight := "", 0.0
	for part := range strings.SplitSeq(accept, ",") {
		kind, options, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := options["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		switch kind {
		case "*/*", "application/*":
			kind = TypeJSON
		case "text/*":
			kind = TypeCSV
		case "application/ndjson", "application/jsonl":
			kind = TypeNDJSON
		case TypeJSON, TypeNDJSON, TypeCSV, TypeArrow:
		default:
			continue
		}
		if q > weight {
			best, weight = kind, q
		}
	}
	if best == "" {
		return "", problemf(http.StatusNotAcceptable, CodeNotAcceptable, "Accept is %q; a query's answer comes as %s, %s, %s or %s",
			accept, TypeJSON, TypeNDJSON, TypeCSV, TypeArrow)
	}
	return best, nil
}

// stream sends a result in a format and counts the rows that it turned into text
// (Arrow passes through uncounted). After an error the answer is not whole.
func (s *Server) stream(w http.ResponseWriter, format string, result *Result) (rows int64, err error) {
	w.Header().Set("Content-Type", format)
	if format == TypeCSV {
		w.Header().Set("Content-Type", TypeCSV+"; charset=utf-8; header=present")
	}
	w.Header().Set("Cache-Control", "no-store")
	out := &stallWriter{w: w, control: http.NewResponseController(w), stall: s.cfg.StallTimeout}
	if format == TypeArrow {
		_, err = io.Copy(out, result.Body)
		return 0, err
	}
	// Rows leave when the buffer is full, and before the engine is waited for.
	buffered := bufio.NewWriterSize(out, 64<<10)
	rows, err = writeRows(buffered, out, format, result)
	if err != nil {
		return rows, err
	}
	return rows, buffered.Flush()
}

// waits reports whether the next read of a body may wait for the engine. A body that
// can't tell is taken for one that does not.
func waits(body io.Reader) bool {
	r, ok := body.(interface{ Ready() bool })
	return ok && !r.Ready()
}

// stallWriter gives each write a time limit of its own, so that a client that
// stops reading does not hold a snapshot of the engine for ever, while a slow one
// may take as long as it needs.
type stallWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

func (o *stallWriter) Write(b []byte) (int, error) {
	// A server that cannot set deadlines (a test's recorder) writes without one.
	_ = o.control.SetWriteDeadline(time.Now().Add(o.stall))
	return o.w.Write(b)
}

// Flush sends what the server holds back. Whoever writes a body calls it before it waits
// for more, and so a row that is there is not kept from its reader.
func (o *stallWriter) Flush() error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.stall))
	// A server that cannot flush has written already.
	if err := o.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// rowWriter is a text form of a result: what stands before the rows, each row, and
// what stands behind.
type rowWriter struct {
	head, tail []byte
	row        func(b *rowtext.Batch, dst []byte, i int) []byte
	between    string
}

func newRowWriter(format string, columns []viewkeeper.Column) (rowWriter, error) {
	switch format {
	case TypeNDJSON:
		return rowWriter{row: (*rowtext.Batch).AppendObject, between: "\n", tail: []byte("\n")}, nil
	case TypeCSV:
		var head []byte
		for i, c := range columns {
			if i > 0 {
				head = append(head, ',')
			}
			head = rowtext.AppendField(head, []byte(c.Name))
		}
		return rowWriter{head: append(head, '\n'), row: (*rowtext.Batch).AppendCSV}, nil
	}
	var head bytes.Buffer
	enc := json.NewEncoder(&head)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(emptyIfNil(columns)); err != nil {
		return rowWriter{}, err
	}
	text := fmt.Sprintf("{\"columns\":%s,\"rows\":[\n", bytes.TrimSuffix(head.Bytes(), []byte("\n")))
	return rowWriter{head: []byte(text), row: (*rowtext.Batch).AppendArray, between: ",\n", tail: []byte("\n]}\n")}, nil
}

func writeRows(w *bufio.Writer, under *stallWriter, format string, result *Result) (rows int64, err error) {
	writer, err := newRowWriter(format, result.Columns)
	if err != nil {
		return 0, err
	}
	body := &errorReader{r: result.Body}
	reader, err := ipc.NewReader(body)
	if err != nil {
		return 0, errors.Join(err, body.failed())
	}
	defer reader.Release()
	if _, err := w.Write(writer.head); err != nil {
		return 0, err
	}
	names := columnNames(reader.Schema())
	var line []byte
	for reader.Next() {
		record := reader.RecordBatch()
		batch := rowtext.NewBatch(record, names)
		for i := range int(record.NumRows()) {
			line = line[:0]
			if rows > 0 {
				line = append(line, writer.between...)
			}
			line = writer.row(batch, line, i)
			if _, err := w.Write(line); err != nil {
				return rows, err
			}
			rows++
		}
		if waits(result.Body) {
			if err := errors.Join(w.Flush(), under.Flush()); err != nil {
				return rows, err
			}
		}
	}
	// The reader takes an error of the body for the end of the stream in some
	// places, so the body is asked itself.
	if err := errors.Join(reader.Err(), body.failed()); err != nil {
		return rows, err
	}
	if rows == 0 && format == TypeNDJSON {
		return 0, nil
	}
	_, err = w.Write(writer.tail)
	return rows, err
}

func columnNames(schema *arrow.Schema) []string {
	names := make([]string, schema.NumFields())
	for i := range names {
		names[i] = schema.Field(i).Name
	}
	return rowtext.UniqueNames(names)
}

// errorReader remembers the error that ended it.
type errorReader struct {
	r   io.Reader
	err error
}

func (e *errorReader) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	if err != nil {
		e.err = err
	}
	return n, err
}

// failed gives the error, or reads what is left to its end: the stream is whole
// only when the body says so itself.
func (e *errorReader) failed() error {
	if e.err == nil {
		_, e.err = io.Copy(io.Discard, e.r)
	}
	if errors.Is(e.err, io.EOF) {
		return nil
	}
	return e.err
}
