package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// pages asks for every page of a listing and hands each to add, which gives the
// parameters of the next page, or nil at the end.
func (a *app) pages(ctx context.Context, path string, query url.Values, add func(raw []byte) (next url.Values, err error)) error {
	node, err := a.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	for {
		var document json.RawMessage
		raw, err := node.get(ctx, path, query, &document)
		if err != nil {
			return err
		}
		next, err := add(raw)
		if err != nil || next == nil {
			return err
		}
		for k, v := range next {
			query[k] = v
		}
	}
}

// fetch asks for one document.
func (a *app) fetch(ctx context.Context, path string, query url.Values, into any) ([]byte, error) {
	node, err := a.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	return node.get(ctx, path, query, into)
}

// printRaw prints a document as it came.
func (a *app) printRaw(raw []byte) error {
	_, err := fmt.Fprintln(a.out, strings.TrimSpace(string(raw)))
	return err
}

// definitionJSON is a definition as a node shows it.
type definitionJSON struct {
	Name          viewkeeper.Name        `json:"name"`
	Kind          viewkeeper.Kind        `json:"kind"`
	Version       viewkeeper.Version     `json:"version"`
	Columns       []viewkeeper.Column    `json:"columns"`
	Reads         []viewkeeper.Reference `json:"reads"`
	ReadBy        []viewkeeper.Name      `json:"read_by"`
	State         string                 `json:"state"`
	Failure       *failureJSON           `json:"failure"`
	SQL           string                 `json:"sql"`
	Comment       *string                `json:"comment"`
	HistoryLength int                    `json:"history_length"`
}

// failureJSON is why a definition does not build on a node.
type failureJSON struct {
	Name      viewkeeper.Name      `json:"name"`
	Stage     string               `json:"stage"`
	Reason    string               `json:"reason"`
	Position  *viewkeeper.Position `json:"position"`
	RootCause *viewkeeper.Name     `json:"root_cause"`
	Since     viewkeeper.Version   `json:"since"`
}
