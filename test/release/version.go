package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// section is the part of CHANGELOG.md about a version.
type section struct {
	version [3]int
	date    time.Time
	text    string
}

var (
	heading = regexp.MustCompile(`^## \[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d{2}-\d{2})$`)
	kinds   = strings.Fields("Added Changed Deprecated Removed Fixed Security")
)

// parseChangelog reads a changelog in the form of Keep a Changelog: unreleased changes
// come first, then versions with their dates, the newest first.
func parseChangelog(text string) ([]section, error) {
	parts := strings.Split("\n"+text, "\n## ")
	var all []section
	for i, part := range parts[1:] {
		title, body, _ := strings.Cut(part, "\n")
		title = "## " + title
		s := section{text: strings.TrimSpace(body)}
		if i == 0 {
			if title != "## [Unreleased]" {
				return nil, fmt.Errorf("begins with %q, want ## [Unreleased]", title)
			}
		} else {
			m := heading.FindStringSubmatch(title)
			if m == nil {
				return nil, fmt.Errorf("%q: want ## [1.2.3] - 2006-01-02", title)
			}
			for k := range s.version {
				n, err := strconv.Atoi(m[1+k])
				if err != nil {
					return nil, fmt.Errorf("%q: %w", title, err)
				}
				s.version[k] = n
			}
			var err error
			if s.date, err = time.Parse(time.DateOnly, m[4]); err != nil {
				return nil, fmt.Errorf("%q: %w", title, err)
			}
			if s.text == "" {
				return nil, fmt.Errorf("CHANGELOG.md: section %q is empty", title)
			}
			if i > 1 {
				newer := all[i-1]
				if slices.Compare(s.version[:], newer.version[:]) >= 0 || s.date.After(newer.date) {
					return nil, fmt.Errorf("%q: comes after %s of %s: want the newest first", title,
						dotted(newer.version), newer.date.Format(time.DateOnly))
				}
			}
		}
		for line := range strings.Lines(s.text) {
			if kind, ok := strings.CutPrefix(line, "### "); ok && !slices.Contains(kinds, strings.TrimSpace(kind)) {
				return nil, fmt.Errorf("%q: section %q, want one of %q", title, strings.TrimSpace(kind), kinds)
			}
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, errors.New("want a section ## [Unreleased]")
	}
	return all, nil
}

func dotted(v [3]int) string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// source is the state of the tree in git.
type source struct {
	commit string // abbreviated
	date   time.Time
	tags   []string // version tags of the commit
	dirty  bool
}

func describe(ctx context.Context, tree string) (source, error) {
	var s source
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = tree
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	// Always twelve digits: the length that git chooses depends on the objects of the clone.
	head, err := git("log", "-1", "--format=%H %ct")
	if err != nil {
		return s, err
	}
	hash, at, _ := strings.Cut(head, " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || len(hash) < 12 {
		return s, fmt.Errorf("git log: %q", head)
	}
	s.commit, s.date = hash[:12], time.Unix(seconds, 0).UTC()
	tags, err := git("tag", "--points-at", "HEAD", "--list", "v[0-9]*")
	if err != nil {
		return s, err
	}
	s.tags = strings.Fields(tags)
	changed, err := git("status", "--porcelain")
	s.dirty = changed != ""
	return s, err
}

// version returns the version of the tree. A commit with a tag has to be the newest version of the changelog, without
// unreleased changes after it. Other trees are development versions of the next patch release.
func version(log []section, src source) (string, error) {
	if len(src.tags) == 0 || src.dirty {
		next := [3]int{0, 1, 0}
		if len(log) > 1 {
			next = log[1].version
			next[2]++
		}
		v := fmt.Sprintf("%s-dev.%s.%s", dotted(next), src.date.Format("20060102"), src.commit)
		if src.dirty {
			v += ".dirty"
		}
		return v, nil
	}
	switch {
	case len(src.tags) > 1:
		return "", fmt.Errorf("the commit has the tags %q, want one", src.tags)
	case len(log) < 2 || src.tags[0] != "v"+dotted(log[1].version):
		return "", fmt.Errorf("tag %s: is not the newest version of CHANGELOG.md", src.tags[0])
	case log[0].text != "":
		return "", fmt.Errorf("tag %s: CHANGELOG.md has changes that are not released", src.tags[0])
	}
	return dotted(log[1].version), nil
}

// changes returns the notes of the release.
func changes(log []section, src source) string {
	if len(src.tags) > 0 && !src.dirty {
		return log[1].text + "\n"
	}
	return log[0].text + "\n"
}
