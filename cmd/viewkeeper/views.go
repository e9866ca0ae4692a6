package main

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

func (a *app) viewsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "views",
		Short: "List the definitions",
		Long:  "views lists the definitions that a node has, with their kinds, versions, states and readers.",
		Example: `  viewkeeper views
  viewkeeper views --like 'sales.%' --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			if a.Like != "" {
				query.Set("like", a.Like)
			}
			if a.Kind != "" {
				query.Set("kind", a.Kind)
			}
			var all []json.RawMessage
			rows := [][]string{}
			err := a.pages(cmd.Context(), "/v1/definitions", query, func(raw []byte) (url.Values, error) {
				var page struct {
					Definitions []json.RawMessage `json:"definitions"`
					Next        *string           `json:"next"`
				}
				if err := json.Unmarshal(raw, &page); err != nil {
					return nil, err
				}
				for _, text := range page.Definitions {
					var d definitionJSON
					if err := json.Unmarshal(text, &d); err != nil {
						return nil, err
					}
					comment := ""
					if d.Comment != nil {
						comment = *d.Comment
					}
					rows = append(rows, []string{d.Name.String(), string(d.Kind), d.State, d.Version.String(),
						strconv.Itoa(len(d.Columns)), strconv.Itoa(len(d.ReadBy)), comment})
				}
				all = append(all, page.Definitions...)
				if page.Next == nil {
					return nil, nil
				}
				return url.Values{"after": {*page.Next}}, nil
			})
			if err != nil {
				return err
			}
			if a.form() == formJSON {
				if all == nil {
					all = []json.RawMessage{}
				}
				return a.printJSON(map[string]any{"definitions": all})
			}
			return a.printRows([]string{"name", "kind", "state", "version", "columns", "readers", "comment"}, rows)
		},
	}
	a.use(cmd.Flags(), "server", "catalog", "output", "timeout", "like", "kind")
	return cmd
}
