package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// figuresFile has the divergences by ggeval of the last whole run, for later runs of some rows.
const figuresFile = "test/quality/testdata/figures.tsv"

// A figure is the divergence of a row.
type figure struct {
	key        string // what it was measured with: other inputs are not comparable
	kld, error float64
}

// worse is by how much a divergence may grow: so many standard errors and this factor; it has to exceed both.
const (
	worseErrors = 3
	worseFactor = 1.05
)

// regressions compares the rows of this run with figuresFile and fails if one has got worse. Rows that are new there
// are added; a run of all rows replaces the others. Figures of less or other text are not compared.
func (q *quality) regressions() error {
	if q.short || q.use != heldOut {
		return nil
	}
	data, err := os.ReadFile(figuresFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	known, err := parseFigures(data)
	if err != nil {
		return fmt.Errorf("%s: %w", figuresFile, err)
	}
	var bad []string
	for _, m := range q.models {
		for _, r := range m.rows() {
			id, c := m.id(r), q.cell(m, r)
			if c == nil || c.Failed != "" && known[id].key == "" {
				continue
			}
			old, same := known[id], known[id].key == c.Key
			if q.fresh[id] && same {
				if why := regression(old, c); why != "" {
					bad = append(bad, id+": "+why)
				}
			}
			if c.Failed == "" && (q.whole || !same) {
				known[id] = figure{c.Key, c.Ours.KLD, c.Ours.KLDError}
			}
		}
	}
	if err := os.WriteFile(figuresFile, formatFigures(known), 0o666); err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("worse than in %s before this run:\n%s", figuresFile, strings.Join(bad, "\n"))
	}
	return nil
}

// regression says why a row is worse than it was, "" if it is not.
func regression(old figure, c *cell) string {
	switch e := max(old.error, c.Ours.KLDError); {
	case c.Failed != "":
		return c.Failed
	case c.Ours.KLD > worseFactor*old.kld && c.Ours.KLD > old.kld+worseErrors*e:
		return fmt.Sprintf("divergence %.6f ± %.6f, was %.6f ± %.6f (%+.0f %%)", c.Ours.KLD, c.Ours.KLDError, old.kld,
			old.error, 100*(c.Ours.KLD/old.kld-1))
	}
	return ""
}

// parseFigures parses the lines of figuresFile, and formatFigures writes them: id, key, divergence and error between
// tabs, after a line with the names of these columns.
func parseFigures(data []byte) (map[string]figure, error) {
	known := map[string]figure{}
	n := 0
	for line := range strings.Lines(string(data)) {
		if n++; n == 1 {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 {
			return nil, fmt.Errorf("line %d has %d columns, want 4", n, len(f))
		}
		v := figure{key: f[1]}
		var err, err2 error
		v.kld, err = strconv.ParseFloat(f[2], 64)
		v.error, err2 = strconv.ParseFloat(f[3], 64)
		if err := errors.Join(err, err2); err != nil || math.IsNaN(v.kld) || math.IsNaN(v.error) {
			return nil, fmt.Errorf("line %d: %q ± %q are not figures: %w", n, f[2], f[3], err)
		}
		known[f[0]] = v
	}
	return known, nil
}

func formatFigures(known map[string]figure) []byte {
	var w bytes.Buffer
	w.WriteString("row\tinputs\tdivergence\terror\n")
	for _, id := range slices.Sorted(maps.Keys(known)) {
		f := known[id]
		fmt.Fprintf(&w, "%s\t%s\t%.7f\t%.7f\n", id, f.key, f.kld, f.error)
	}
	return w.Bytes()
}
