// Command test-clis tries the command lines of other agents under muntin, for
// real: each in a pane of a private tmux, pointed by its own settings at a
// model on the loopback interface. It needs no key and no network. It prints a
// table, and writes it into a document between two marks.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	muntin, clis, node, docs string
	only                     []string
	limit                    time.Duration
	keep                     bool
}

func main() {
	var o options
	only := ""
	flag.StringVar(&o.muntin, "muntin", "bin/muntin", "the muntin to try")
	flag.StringVar(&o.clis, "clis", "", "folder with one folder a CLI, each with node_modules/.bin in it")
	flag.StringVar(&o.node, "node", "", "folder of the node to use, put first in PATH")
	flag.StringVar(&o.docs, "docs", "", "the document to write the table into")
	flag.StringVar(&only, "only", "", "the CLIs to try, with commas; all if empty")
	flag.DurationVar(&o.limit, "limit", 2*time.Minute, "for each step")
	flag.BoolVar(&o.keep, "keep", false, "keep the folders of the trials")
	flag.Parse()
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-clis:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	for _, path := range []*string{&o.muntin, &o.clis} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	var rows []row
	for _, p := range products() {
		if len(o.only) > 0 && !slices.Contains(o.only, p.name) {
			continue
		}
		r := try(ctx, o, p)
		fmt.Fprintln(os.Stdout, r)
		rows = append(rows, r)
		if ctx.Err() != nil {
			break
		}
	}
	if o.docs != "" {
		return writeTable(o.docs, rows)
	}
	return nil
}
