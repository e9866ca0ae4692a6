package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/restore"
	"github.com/viewkeeper/viewkeeper/server"
)

// exportFile is the catalog as one JSON document: what restore reads back.
type exportFile struct {
	Format  int                `json:"format"`
	Catalog string             `json:"catalog"`
	Version viewkeeper.Version `json:"version"`
	Epoch   viewkeeper.Epoch   `json:"epoch"`
	At      time.Time          `json:"at"`
	// DefinitionsTopic and VersionBase say which offsets the versions count; an export
	// from a node does not have them, nor the ids.
	DefinitionsTopic string             `json:"definitions_topic,omitempty"`
	VersionBase      viewkeeper.Version `json:"version_base,omitempty"`
	// Rows are the definitions, sorted by name; each is a [viewkeeper.RowJSON], and of an
	// export from the table the row as it lies there, so that nothing that a newer program
	// says of it is lost.
	Rows []json.RawMessage `json:"rows"`
	// IDs are the known statement ids.
	IDs []codec.ID `json:"statement_ids,omitempty"`
}

// source gives an export to restore.
func (in *exportFile) source(dir string) (*restore.Source, error) {
	s := &restore.Source{
		Kind: restore.Export, Place: dir, Version: in.Version, Epoch: in.Epoch,
		DefinitionsTopic: in.DefinitionsTopic, VersionBase: in.VersionBase, IDs: in.IDs,
	}
	for i, raw := range in.Rows {
		row, err := exportedRow(raw)
		if err != nil {
			return nil, refusedf("row %d of the export in %s: %w", i, dir, err)
		}
		s.Rows = append(s.Rows, row)
	}
	return s, nil
}

// exportedRow reads one of an export's rows.
func exportedRow(raw json.RawMessage) (viewkeeper.Row, error) {
	var r struct {
		viewkeeper.RowJSON
		Format int `json:"format"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return viewkeeper.Row{}, err
	}
	switch {
	case r.Format > codec.Format:
		return viewkeeper.Row{}, fmt.Errorf("it is of format %d, and this program knows format %d; restore with the program that wrote it", r.Format, codec.Format)
	case r.Format > 0:
		if row, ok := codec.DecodeRecord(r.Name.String(), raw).(codec.Row); ok {
			return row.Row, nil
		}
		return viewkeeper.Row{}, errors.New("it is not a row")
	case r.Name.IsZero() || r.Definition == nil || r.Definition.Name != r.Name:
		return viewkeeper.Row{}, errors.New("it has no name, or no definition of that name")
	}
	return viewkeeper.Row{Name: r.Name, Version: r.Version, Definition: r.Definition}, nil
}

const (
	exportFormat = 1
	exportName   = "catalog.json"
)

func (a *app) exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the catalog as files",
		Long: `export writes the catalog as files: catalog.json, which 'viewkeeper restore' reads
back, and for people and version control SCHEMA/VIEW.sql with each definition's
text and comment. Files of an earlier export of definitions that are gone are
removed; a directory that holds anything else is refused.

It asks a node, or with --brokers reads the table itself.`,
		Example: `  viewkeeper export backup/
  viewkeeper export backup/ --brokers kafka:9092 --catalog prod`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args[0]) },
	}
	a.use(cmd.Flags(), "server", "brokers", "catalog", "timeout")
	return cmd
}

func (a *app) export(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	shown := a.startProgress("reading the catalog")
	read := a.exportFromNode
	if a.direct() {
		read = a.exportFromTable
	}
	out, err := read(ctx)
	shown.stop()
	if err != nil {
		return err
	}
	out.Format, out.At = exportFormat, time.Now().UTC().Truncate(time.Millisecond)
	if err := clearExport(dir); err != nil {
		return err
	}
	for _, raw := range out.Rows {
		row, err := exportedRow(raw)
		if err != nil {
			return err
		}
		path := sqlPath(dir, row.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(sqlText(row.Definition)), 0o644); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, exportName), append(text, '\n'), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "exported %d definitions of catalog %s at version %s to %s\n", len(out.Rows), out.Catalog, out.Version, dir)
	return err
}

func sqlPath(dir string, name viewkeeper.Name) string {
	return filepath.Join(dir, name.Schema, name.View+".sql")
}

func sqlText(d *viewkeeper.Definition) string {
	text := d.SQL + "\n;\n"
	if d.Comment != nil {
		text += fmt.Sprintf("COMMENT ON VIEW %s IS '%s';\n", d.Name, escapeQuote(*d.Comment))
	}
	return text
}

// clearExport makes dir ready for an export: an earlier export's files are removed,
// and only those.
func clearExport(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	before, err := readExport(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && len(entries) > 0:
		return refusedf("%s holds files that are not an export's; name an empty directory, or one of an earlier export", dir)
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	for _, raw := range before.Rows {
		row, err := exportedRow(raw)
		if err != nil {
			continue // its file is not known
		}
		if err := os.Remove(sqlPath(dir, row.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func readExport(dir string) (*exportFile, error) {
	path := filepath.Join(dir, exportName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	in := &exportFile{}
	if err := json.Unmarshal(text, in); err != nil {
		return nil, refusedf("%s is not an export: %w", path, err)
	}
	if in.Format != exportFormat {
		return nil, refusedf("%s has format %d; this program reads format %d", path, in.Format, exportFormat)
	}
	return in, nil
}

// exportFromNode reads all pages at one version, and starts again when the catalog
// changed in between.
func (a *app) exportFromNode(ctx context.Context) (*exportFile, error) {
	node, err := a.client()
	if err != nil {
		return nil, err
	}
	for {
		out, same, err := readPages(ctx, node)
		if err != nil || same {
			return out, err
		}
	}
}

func readPages(ctx context.Context, node *client) (out *exportFile, same bool, err error) {
	var st viewkeeper.Status
	if _, err := node.get(ctx, "/v1/status", nil, &st); err != nil {
		return nil, false, err
	}
	out = &exportFile{Catalog: st.Catalog, Version: st.Version, Epoch: st.Epoch, Rows: []json.RawMessage{}}
	for after := ""; ; {
		resp, err := node.send(ctx, "GET", "/v1/definitions?"+url.Values{"after": {after}}.Encode(), nil, nil)
		if err != nil {
			return nil, false, err
		}
		var page struct {
			Definitions []struct {
				definitionJSON
				ID viewkeeper.Version `json:"id"`
			} `json:"definitions"`
			Next *string `json:"next"`
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil {
			return nil, false, fmt.Errorf("reading the definitions: %w", err)
		}
		if resp.Header.Get(server.HeaderVersion) != st.Version.String() {
			return nil, false, nil
		}
		for _, d := range page.Definitions {
			raw, err := json.Marshal(viewkeeper.RowJSON{Name: d.Name, Version: d.Version, Definition: &viewkeeper.Definition{
				Name: d.Name, Kind: d.Kind, SQL: d.SQL, Comment: d.Comment, ID: d.ID,
			}})
			if err != nil {
				return nil, false, err
			}
			out.Rows = append(out.Rows, raw)
		}
		if page.Next == nil {
			return out, true, nil
		}
		after = *page.Next
	}
}

func (a *app) exportFromTable(ctx context.Context) (*exportFile, error) {
	topics, err := a.openTopics()
	if err != nil {
		return nil, err
	}
	defer topics.Close()
	table, err := topics.restoring().Table(ctx)
	if err != nil {
		return nil, kafkaFailure(err)
	}
	commit := table.Fold.Commit()
	switch {
	case table.Begin > 0:
		return nil, refusedf("the table of catalog %s begins at offset %d: its first records were deleted, and definitions may be missing; 'viewkeeper restore' says what can be put back", a.Catalog, table.Begin)
	case commit == nil:
		return nil, refusedf("the table of catalog %s has no commit row: nothing was ever decided, or the table was lost; 'viewkeeper restore' says what can be put back", a.Catalog)
	}
	out := &exportFile{
		Catalog: a.Catalog, Version: commit.Version, Epoch: table.Fold.Epoch(), Rows: []json.RawMessage{},
		DefinitionsTopic: commit.DefinitionsTopic, VersionBase: commit.VersionBase,
		IDs: slices.SortedFunc(table.Fold.IDs, func(x, y codec.ID) int { return cmp.Compare(x.Version, y.Version) }),
	}
	for _, row := range table.Fold.Rows() {
		if row.Live() {
			_, value := codec.EncodeRecord(codec.Row{Row: row})
			out.Rows = append(out.Rows, value)
		}
	}
	return out, nil
}

func escapeQuote(s string) string { return strings.ReplaceAll(s, "'", "''") }
