package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/llm"
	"muntin/agent/llm/catalog"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

// NewCmd makes `muntin models`.
func NewCmd(a *app.App) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "models [query]",
		Short: "The models there are, with their windows and prices",
		Long: "Lists the models of providers that there is a key for, or that need none; with\n" +
			"--all, or when there is a query, those of all providers. The facts are of " + "the\n" +
			"catalogue that ships with muntin, and of models.json in the folder of settings.",
		Args: app.Args(0, 1, "at most one text to look for"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := NewShop(a)
			if err != nil {
				return err
			}
			rows := s.list(strings.Join(args, ""), all)
			for _, w := range s.Catalog.Warnings() {
				fmt.Fprintln(a.Streams.Err, "muntin: "+term.CleanLine(w))
			}
			if asJSON {
				enc := json.NewEncoder(a.Streams.Out)
				enc.SetIndent("", "  ")
				return enc.Encode(listing{Date: catalog.Date(), Models: rows, Aliases: s.Catalog.Aliases()})
			}
			return s.print(rows)
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also of providers that there is no key for")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

type listing struct {
	Date   string `json:"date"` // of the facts
	Models []row  `json:"models"`

	Aliases map[string]string `json:"aliases,omitempty"`
}

type row struct {
	Usable bool `json:"usable"`
	llm.Model
}

// list gives the models that a query is a part of.
func (s *Shop) list(query string, all bool) []row {
	rows := []row{}
	for _, p := range s.Catalog.Providers() {
		usable := s.Usable(p) || p.NoKey
		if !usable && !all && query == "" {
			continue
		}
		for _, m := range s.Catalog.Models(p.ID) {
			text := strings.ToLower(m.Provider + "/" + m.ID + " " + m.Name)
			if strings.Contains(text, strings.ToLower(query)) {
				rows = append(rows, row{Usable: usable, Model: m})
			}
		}
	}
	return rows
}

func (s *Shop) print(rows []row) error {
	a := s.app
	if len(rows) == 0 {
		return app.Hint(fmt.Errorf("no model to show"), "muntin models --all lists all; muntin login <provider> stores a key")
	}
	t := term.NewTable("model", "window", "output", "in $/M", "out $/M", "thinks", "sees", "key")
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return ""
	}
	for _, r := range rows {
		t.Row(term.CleanLine(r.Provider+"/"+r.ID), tokens(r.ContextWindow), tokens(r.MaxTokens), price(r.Price.Input), price(r.Price.Output),
			yes(r.Reasoning), yes(r.TakesImages()), yes(r.Usable))
	}
	width, _ := a.Streams.Size()
	if !a.Streams.OutTTY {
		width = 0
	}
	if err := t.Write(a.Streams.Out, a.Theme, width); err != nil {
		return err
	}
	aliases := s.Catalog.Aliases()
	for _, name := range slices.Sorted(maps.Keys(aliases)) {
		fmt.Fprintf(a.Streams.Out, "%s stands for %s\n", term.CleanLine(name), term.CleanLine(aliases[name]))
	}
	return nil
}

func tokens(n int) string {
	const k = 1000
	switch {
	case n == 0:
		return "?"
	case n >= k*k:
		return strconv.FormatFloat(float64(n)/(k*k), 'g', 3, 64) + "M"
	case n >= k:
		return strconv.Itoa(n/k) + "k"
	}
	return strconv.Itoa(n)
}

func price(dollars float64) string { return strconv.FormatFloat(dollars, 'f', -1, 64) }
