package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is the outcome of a test.
type row struct {
	passed, failed, skipped int
	wall, cpu               time.Duration
	date, commit            string
	failures                []string
	skips                   map[string]int // reasons, and how many cases each
	notes                   []string       // of failures and skips, as they are printed
}

// add adds a part of the test.
func (r *row) add(s *row) {
	r.passed, r.failed, r.skipped = r.passed+s.passed, r.failed+s.failed, r.skipped+s.skipped
	r.wall, r.cpu = r.wall+s.wall, r.cpu+s.cpu
	r.failures = append(r.failures, s.failures...)
	if r.skips == nil {
		r.skips = map[string]int{}
	}
	for why, n := range s.skips {
		r.skips[why] += n
	}
	r.notes = nil
	for _, name := range r.failures {
		r.notes = append(r.notes, "failed: `"+name+"`")
	}
	why := slices.SortedFunc(maps.Keys(r.skips), func(a, b string) int {
		if n := r.skips[b] - r.skips[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for i, text := range why {
		if i == mostReasons {
			left := 0
			for _, text := range why[i:] {
				left += r.skips[text]
			}
			r.notes = append(r.notes, fmt.Sprintf("skipped %d: other reasons", left))
			break
		}
		r.notes = append(r.notes, fmt.Sprintf("skipped %d: %s", r.skips[text], short(text)))
	}
}

const (
	mostReasons = 5   // of skips, for each test
	mostLetters = 120 // of a reason
)

// short returns the beginning of a text, as Markdown without markup.
func short(text string) string {
	if c := []rune(text); len(c) > mostLetters {
		text = string(c[:mostLetters]) + "…"
	}
	return strings.NewReplacer("`", "'", "|", "/", "<", "‹", ">", "›", "*", "×", "_", "\\_").Replace(text)
}

func (r *row) summary() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped, %.0f s", r.passed, r.failed, r.skipped, r.wall.Seconds())
}

// report is the document.
type report struct {
	rows   map[string]*row
	system []string
}

const (
	title = "| test | passed | failed | skipped | seconds | CPU seconds | date | commit |\n"
	notes = "## Failed and skipped\n"
)

func (p *report) String() string {
	var b strings.Builder
	b.WriteString(`# Comparison with llama.cpp, test by test

` + "`make interop-all`" + ` runs the tests of test/interop, two at a time, and writes this page; ` + "`ALL='-run REGEXP'`" + ` runs
some of them, and the rows of the others stay. A case is a subtest without subtests: a checkpoint, a variant of one, a
type. A case is skipped where llama.cpp itself fails, or where there is nothing to compare.

`)
	for _, line := range p.system {
		b.WriteString("* " + line + "\n")
	}
	commits, failed := map[string]bool{}, 0
	var total row
	for _, r := range p.rows {
		commits[r.commit] = true
		total.add(&row{passed: r.passed, failed: r.failed, skipped: r.skipped, wall: r.wall, cpu: r.cpu})
		if r.failed > 0 {
			failed++
		}
	}
	list := strings.Join(slices.Sorted(maps.Keys(commits)), ", ")
	fmt.Fprintf(&b, "* %d tests, %d of them with failures, at %s: %s\n\n", len(p.rows), failed, list,
		strings.Join([]string{count(total.passed, "case") + " passed", strconv.Itoa(total.failed) + " failed",
			strconv.Itoa(total.skipped) + " skipped"}, ", "))
	b.WriteString(title + "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(p.rows)) {
		r := p.rows[name]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %.0f | %.0f | %s | %s |\n", name, r.passed, r.failed, r.skipped,
			r.wall.Seconds(), r.cpu.Seconds(), r.date, r.commit)
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | %.0f | %.0f | | |\n", total.passed, total.failed, total.skipped,
		total.wall.Seconds(), total.cpu.Seconds())
	b.WriteString("\nTests that need other programs have commands of their own:\n\n")
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		fmt.Fprintf(&b, "* %s: `%s`\n", name, elsewhere[name])
	}
	b.WriteString("\n" + notes)
	for _, name := range slices.Sorted(maps.Keys(p.rows)) {
		if list := p.rows[name].notes; list != nil {
			fmt.Fprintf(&b, "\n%s:\n\n", name)
			for _, note := range list {
				b.WriteString("* " + note + "\n")
			}
		}
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// parse returns the rows of a document.
func parse(text string) map[string]*row {
	rows := map[string]*row{}
	_, text, _ = strings.Cut(text, title)
	table, after, _ := strings.Cut(text, notes)
	for line := range strings.Lines(table) {
		f := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(f) != 8 || f[0] == "---" {
			continue
		}
		r := &row{date: f[6], commit: f[7]}
		for i, p := range []*int{&r.passed, &r.failed, &r.skipped} {
			*p, _ = strconv.Atoi(f[1+i])
		}
		for i, p := range []*time.Duration{&r.wall, &r.cpu} {
			n, _ := strconv.Atoi(f[4+i])
			*p = time.Duration(n) * time.Second
		}
		rows[f[0]] = r
	}
	name := ""
	for line := range strings.Lines(after) {
		line = strings.TrimSpace(line)
		if note, ok := strings.CutPrefix(line, "* "); ok && rows[name] != nil {
			rows[name].notes = append(rows[name].notes, note)
		} else if line != "" {
			name = strings.TrimSuffix(line, ":")
		}
	}
	return rows
}

// describe returns lines about this machine and the versions of the tools.
func describe(ctx context.Context) ([]string, error) {
	root := os.Getenv("ORACLE_ROOT")
	versions, err := output(ctx, "chroot", root, "dpkg-query", "-W", "-f", "${Package} ${Version}, ", "llama.cpp-tools",
		"libggml0", "python3-torch", "python3-transformers", "python3-numpy")
	if err != nil {
		return nil, err
	}
	cpu := "unknown"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			cpu = strings.TrimSpace(value)
			break
		}
	}
	return []string{
		"llama.cpp and what it runs with (Debian packages): " + strings.TrimSuffix(versions, ","),
		fmt.Sprintf("commands and tests: %s, %s/%s; %d CPUs, %s", runtime.Version(), runtime.GOOS, runtime.GOARCH,
			runtime.NumCPU(), cpu),
		"last run: " + time.Now().UTC().Format("2006-01-02 15:04 UTC"),
	}, nil
}
