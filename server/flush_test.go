package server

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// waitingBody gives its first part at once, and the rest when it is let go on.
type waitingBody struct {
	first, rest io.Reader
	goOn        chan struct{}
	begun       bool // with the rest
}

func (b *waitingBody) Read(p []byte) (int, error) {
	if !b.begun {
		if n, err := b.first.Read(p); err == nil {
			return n, nil
		}
		<-b.goOn
		b.begun = true
	}
	return b.rest.Read(p)
}

func (b *waitingBody) Ready() bool {
	left, ok := b.first.(*strings.Reader)
	return b.begun || ok && left.Len() > 0
}

func (b *waitingBody) Close() error { return nil }

// WriteTo is how an engine's body writes Arrow.
func (b *waitingBody) WriteTo(w io.Writer) (int64, error) {
	total, err := io.Copy(w, struct{ io.Reader }{b.first})
	if f, ok := w.(interface{ Flush() error }); ok && err == nil {
		err = f.Flush()
	}
	if err != nil {
		return total, err
	}
	<-b.goOn
	n, err := io.Copy(w, struct{ io.Reader }{b.rest})
	return total + n, err
}

// Rows that are there reach the client while the engine works on the next ones.
func TestRowsDoNotWaitForTheNextOnes(t *testing.T) {
	whole := arrowBody(t, `[{"n":1,"s":"first"}]`, `[{"n":2,"s":"second"}]`)
	cut := len(arrowBody(t, `[{"n":1,"s":"first"}]`)) - 8 // without the end of a stream
	for _, format := range []string{TypeJSON, TypeNDJSON, TypeCSV, TypeArrow} {
		w, goOn := newWorld(), make(chan struct{})
		w.query = func(context.Context, Query) (*Result, error) {
			return &Result{Version: 7, Columns: resultColumns, Body: &waitingBody{
				first: strings.NewReader(string(whole[:cut])), rest: strings.NewReader(string(whole[cut:])), goOn: goOn,
			}}, nil
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", w.start(t)+"/v1/query", strings.NewReader("SELECT n, s FROM v"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", format)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body := bufio.NewReader(resp.Body)
		var got strings.Builder
		for !strings.Contains(got.String(), "first") {
			b, err := body.ReadByte()
			if err != nil {
				t.Fatalf("%s: %v after %q", format, err, got.String())
			}
			got.WriteByte(b)
		}
		close(goOn)
		rest, err := io.ReadAll(body)
		if err != nil || !strings.Contains(string(rest), "second") {
			t.Errorf("%s: %v after %q", format, err, rest)
		}
	}
}
