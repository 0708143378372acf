package main

import (
	"fmt"
	"strconv"
	"strings"
)

// group writes a number with commas.
func group(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func duration(seconds float64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 7200:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

// tables returns the text of each table in the document.
func tables(steps []*step, s *state, commit string) map[string]string {
	all := map[string]*strings.Builder{}
	table := func(group, head string) {
		b := &strings.Builder{}
		columns := strings.Split(head, " | ")
		fmt.Fprintf(b, "| %s |\n|", head)
		for _, c := range columns {
			if c[0] >= 'A' && c[0] <= 'Z' { // a column of numbers
				b.WriteString(" ---: |")
			} else {
				b.WriteString(" --- |")
			}
		}
		b.WriteString("\n")
		all[group] = b
	}
	table("summary", "what | Steps | Complete | Done | Wanted | Time of a processor | failures | last slice | at commit")
	table("kills", "command | Kills | Wanted | SIGKILL | SIGTERM | Before | Writing | Names changing | After | "+
		"Ended first | Power cuts | Full disks | Rounds with the right bytes | failures | at commit")
	table("programs", "command | what | Cases passed | Skipped | result | Time | date | at commit")
	table("parity", "type | Sub-blocks | Wanted | Time | differences | date | at commit")
	table("fuzz", "package | target | Executions | Wanted | Guided | Inputs kept | Time | failures | date | at commit")
	order := []string{}
	type sum struct {
		steps, complete int
		done, want      int64
		failed          int
		seconds         float64
		unit            string
		last            record
	}
	sums := map[string]*sum{}
	for _, p := range steps {
		t := s.of(p)
		date, at := "", ""
		counts := t
		if last := s.last[p.name]; t.Slices == 0 && last != nil {
			t, counts, at = *last, record{}, ", older code"
		}
		if t.Slices > 0 {
			date, at = t.Time.Format("2006-01-02"), t.Commit+at
		}
		g := sums[p.group]
		if g == nil {
			g = &sum{unit: p.unit}
			sums[p.group], order = g, append(order, p.group)
		}
		g.steps, g.done, g.want = g.steps+1, g.done+min(counts.Done, p.want), g.want+p.want
		g.seconds += counts.Processor
		if counts.Done >= p.want && counts.Failed == 0 {
			g.complete++
		}
		failures := "none"
		switch {
		case t.Failed > 0:
			failures = "**failed**"
			if counts.Failed > 0 {
				g.failed++
			}
		case t.Done == 0:
			failures = ""
		}
		if counts.Time.After(g.last.Time) {
			g.last = counts
		}
		row := func(cells ...any) {
			b := all[p.group]
			for _, c := range cells {
				if n, ok := c.(int64); ok {
					c = group(n)
				}
				fmt.Fprintf(b, "| %v ", c)
			}
			b.WriteString("|\n")
		}
		f := t.Figures
		switch p.group {
		case "kills":
			row(strings.TrimPrefix(p.name, "kills: "), t.Done, p.want, f["sigkill"], f["sigterm"], f["before"], f["writing"],
				f["names_changing"], f["after"], f["ended"], f["power_cuts"], f["full_disks"], f["rounds"], failures, at)
		case "programs":
			result := failures
			switch {
			case t.Note != "" && t.Failed == 0:
				result = "not run: " + cell(t.Note)
			case t.Done > 0 && t.Failed == 0:
				result = "passed"
			case t.Slices == 0:
				result = "not run yet"
			}
			row("`"+p.name+"`", about(p.name), f["pass"], f["skip"], result, duration(t.Seconds), date, at)
		case "parity":
			row(strings.TrimPrefix(p.name, "parity "), t.Done, p.want, duration(t.Processor), failures, date, at)
		case "fuzz":
			names := strings.Fields(p.name)
			row("`"+names[1]+"`", names[2], t.Done, p.want, f["guided"], f["inputs"], duration(t.Processor), failures, date, at)
		}
	}
	for _, name := range order {
		g, last := sums[name], ""
		if !g.last.Time.IsZero() {
			last = g.last.Time.Format("2006-01-02 15:04")
		}
		failures := "none"
		if g.failed > 0 {
			failures = fmt.Sprintf("**%d**", g.failed)
		} else if g.done == 0 {
			failures = ""
		}
		what := name
		if g.unit != name {
			what += ", " + g.unit
		}
		fmt.Fprintf(all["summary"], "| %s | %d | %d | %s | %s | %s | %s | %s | %s |\n", what, g.steps, g.complete,
			group(g.done), group(g.want), duration(g.seconds), failures, last, g.last.Commit)
	}
	texts := map[string]string{}
	for name, b := range all {
		texts[name] = b.String()
	}
	for _, p := range steps {
		if p.name == "faults" {
			t := s.of(p)
			if last := s.last[p.name]; t.Slices == 0 && last != nil {
				t = *last
			}
			texts["faults"] = fmt.Sprintf("%s faults in %d scenes, each at another call or of another kind (%d of %d shares of "+
				"all of them): %s of the runs failed, and %s were right in spite of the fault.\n", group(t.Figures["faults"]),
				t.Figures["scenes"], t.Done, p.want, group(t.Figures["failed runs"]), group(t.Figures["right runs"]))
		}
	}
	texts["summary"] = "The tree is " + commit + ".\n\n" + texts["summary"]
	return texts
}

// about describes a make target.
func about(name string) string {
	for _, p := range programs {
		if "make "+p.target == name {
			return p.what
		}
	}
	return ""
}

// cell is a text in a table.
func cell(text string) string {
	return strings.NewReplacer("|", "/", "\n", " ", "<", "‹", ">", "›").Replace(text)
}

// begin and end are the lines around a table of the document.
func begin(name string) string { return "<!-- make trust writes this: " + name + " -->\n" }

const end = "<!-- end of make trust -->\n"

// fill replaces the tables of a document.
func fill(text string, steps []*step, s *state, commit string) (string, error) {
	for name, table := range tables(steps, s, commit) {
		before, rest, ok := strings.Cut(text, begin(name))
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			return "", fmt.Errorf("no lines %q and %q", begin(name), end)
		}
		text = before + begin(name) + table + end + after
	}
	return text, nil
}
