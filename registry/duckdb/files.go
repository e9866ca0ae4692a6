package duckdb

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// The engine resolves a relative path against the process's own folder, and its
// file_search_path counts for nothing once external access is off. So a path is
// written out in full before the engine sees the text; nobody else sees that.

// fileRef is one place where a text names a file.
type fileRef struct {
	written string // as the text has it
	full    string
	at, end int // the token in the text, or -1
}

// extensions are those by which the engine takes a name in a FROM clause for a
// file.
var extensions = []string{".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson"}

// looksLikeFile reports whether a name in a FROM clause that no relation has is a
// file for the engine, or was meant as one.
func looksLikeFile(name string) bool {
	name = viewkeeper.Fold(name)
	if strings.ContainsAny(name, `/\*`) {
		return true
	}
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return slices.ContainsFunc(extensions, func(e string) bool { return strings.HasSuffix(name, e) })
}

// resolve gives the full path that a path in SQL stands for. The error says in
// part of a sentence why it is not allowed.
func (l lake) resolve(path string) (full, why string) {
	switch {
	case len(l.dirs) == 0:
		return "", "no folder is granted here (--lake)"
	case strings.Contains(path, "://"):
		return "", "files are read from the lake folders only, not over the network"
	case path == "" || strings.ContainsRune(path, 0):
		return "", "that is no path"
	}
	full = path
	if !filepath.IsAbs(path) {
		full = filepath.Join(l.dirs[0], path)
	}
	full = filepath.Clean(full)
	for _, dir := range l.dirs {
		if strings.HasPrefix(full, strings.TrimSuffix(dir, "/")+"/") {
			return full, ""
		}
	}
	return "", "it is outside the lake folders"
}

// file notes a file that the text names at the token at, and refuses one that is
// not under a lake folder.
func (w *walker) file(path string, at int) {
	full, why := w.gate.lake.resolve(path)
	if why != "" {
		w.refuse(viewkeeper.CodeNotAllowed, at, "the file %s may not be read: %s", quoteLiteral(path), why)
		full = path
	}
	f := fileRef{written: path, full: full, at: -1, end: -1}
	if w.macro.IsZero() && at >= 0 {
		if i := w.tokenAt(at); i >= 0 {
			f.at, f.end = w.tokens[i].at, w.tokens[i].end
		}
	}
	w.files = append(w.files, f)
}

// paths notes the files that the first argument of a file reader names.
func (w *walker) paths(reader string, arg object, at int) {
	if path, ok := literal(arg); ok {
		w.file(path, location(arg))
		return
	}
	if str(arg, "class") == "FUNCTION" && str(arg, "function_name") == "list_value" {
		for _, c := range objects(arg, "children") {
			path, ok := literal(c)
			if !ok {
				w.refuse(viewkeeper.CodeNotAllowed, at, "the paths given to %s() must be literals", reader)
				return
			}
			w.file(path, location(c))
		}
		return
	}
	w.refuse(viewkeeper.CodeNotAllowed, at, "the path given to %s() must be a literal, or a list of literals", reader)
}

// withFullPaths writes the full paths of files into text. The map leads back from
// places in the new text.
func withFullPaths(text string, files []fileRef) (string, ddl.OffsetMap) {
	var edits []ddl.Edit
	for _, f := range files {
		if f.at >= 0 {
			edits = append(edits, ddl.Edit{At: f.at, End: f.end, Text: quoteLiteral(f.full)})
		}
	}
	slices.SortFunc(edits, func(a, b ddl.Edit) int { return a.At - b.At })
	return ddl.ApplyEdits(text, edits)
}

// mayNameFiles reports whether a text has a token that could be a path.
func mayNameFiles(text string) bool {
	for _, t := range lex(text) {
		if (t.kind == tokenString || t.kind == tokenQuoted) && strings.ContainsAny(t.text(text), "./") {
			return true
		}
	}
	return false
}

// hide takes the lake's place on this node's disk out of a message, so that every
// node says the same.
func (l lake) hide(message string) string {
	for _, dir := range l.dirs {
		message = strings.ReplaceAll(message, strings.TrimSuffix(dir, "/")+"/", "")
	}
	return message
}
