package hub

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"ggforge/fault"
)

// Repo is a repository of a model.
type Repo struct{ Org, Name string }

// String returns ORG/NAME.
func (r Repo) String() string { return r.Org + "/" + r.Name }

// Scheme is how names of repositories begin.
const Scheme = "hf://"

// MainBranch is the branch that a repository begins with.
const MainBranch = "main"

const (
	maxName   = 96   // characters of the name of a repository or an organization
	maxBranch = 200  // bytes of the name of a branch
	maxPath   = 1024 // bytes of the path of a file
)

var (
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	branchForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*$`)
	commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Parse parses hf://ORG/NAME or hf://ORG/NAME@BRANCH, with names that the hub permits for new repositories. The error
// has kind fault.Usage.
func Parse(name string) (r Repo, branch string, err error) {
	rest, ok := strings.CutPrefix(name, Scheme)
	id, branch, with := strings.Cut(rest, "@")
	org, model, two := strings.Cut(id, "/")
	if !with {
		branch = MainBranch
	}
	ok = ok && two && len(branch) <= maxBranch && branchForm.MatchString(branch) &&
		!strings.Contains(branch, "..") && !strings.Contains(branch, "//") && !strings.HasSuffix(branch, "/")
	for _, part := range []string{org, model} {
		ok = ok && len(part) <= maxName && nameForm.MatchString(part) && !strings.Contains(part, "--") &&
			!strings.Contains(part, "..")
	}
	if !ok || strings.HasSuffix(model, ".git") || strings.HasSuffix(model, ".ipynb") {
		return Repo{}, "", fault.Errorf(fault.Usage, "%q: want hf://ORG/NAME or hf://ORG/NAME@BRANCH: letters, "+
			"digits, -, _ and ., at most %d of them, no -- and no ..", name, maxName)
	}
	return Repo{org, model}, branch, nil
}

// CheckPath returns an error of kind fault.Usage for a path, with slashes, that the hub does not take.
func CheckPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".git" || part == ".cache" {
			return fault.Errorf(fault.Usage, "%q: the hub takes no path with %s", path, part)
		}
	}
	if !fs.ValidPath(path) || path == "." || len(path) > maxPath || strings.ContainsAny(path, "\\\x00") {
		return fault.Errorf(fault.Usage, "%q: the hub takes paths in UTF-8 of at most %d bytes, without \\", path,
			maxPath)
	}
	return nil
}

// IsPullRequest reports whether a branch is that of a pull request.
func IsPullRequest(branch string) bool { return strings.HasPrefix(branch, pullRequests) }

const pullRequests = "refs/pr/"

// api returns the address of a part of the API about a repository; path is escaped by the caller.
func (c *Client) api(r Repo, path string) string {
	return c.endpoint.String() + "/api/models/" + r.String() + path
}

// Page returns the address of the repository for people.
func (c *Client) Page(r Repo) string { return c.endpoint.String() + "/" + r.String() }

// Info is the state of a branch of a repository.
type Info struct {
	Head    string // the commit
	Private bool
}

// ErrNoRepository and ErrNoBranch are the causes of errors of Info. They are fs.ErrNotExist.
var (
	ErrNoRepository = fmt.Errorf("no such repository: %w", fs.ErrNotExist)
	ErrNoBranch     = fmt.Errorf("no such branch: %w", fs.ErrNotExist)
)

// Info returns the state of a branch.
func (c *Client) Info(ctx context.Context, r Repo, branch string) (i Info, err error) {
	op := "look at " + r.String()
	a, err := c.do(ctx, request{op: op, method: http.MethodGet, address: c.api(r, "/revision/"+url.PathEscape(branch))})
	if err != nil {
		var e *Error
		switch {
		case !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist):
		case e.Code == revisionNotFound:
			err = fmt.Errorf("%s@%s: %w", r, branch, ErrNoBranch)
		case e.Code == repoNotFound:
			err = fmt.Errorf("%s: %w", r, ErrNoRepository)
		}
		return i, err
	}
	var v struct {
		SHA     string `json:"sha"`
		Private bool   `json:"private"`
	}
	if err := decode(op, a.data, &v); err != nil {
		return i, err
	}
	if !commitForm.MatchString(v.SHA) {
		return i, fault.Errorf(fault.Broken, "%s: the hub's answer has no commit", op)
	}
	return Info{v.SHA, v.Private}, nil
}

// Create creates a repository; created is false if there is one.
func (c *Client) Create(ctx context.Context, r Repo, private bool) (created bool, err error) {
	op := "create " + r.String()
	v := map[string]any{"name": r.Name, "organization": r.Org, "type": "model"}
	if private {
		v["visibility"] = "private"
	}
	size, body := encoded(v)
	_, err = c.do(ctx, request{op: op, method: http.MethodPost, address: c.endpoint.String() + "/api/repos/create",
		kind: "application/json", size: size, body: body})
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusConflict && !e.busy() {
		return false, nil
	}
	return err == nil, err
}

// Branch creates a branch from main; one that exists is no error.
func (c *Client) Branch(ctx context.Context, r Repo, branch string) error {
	size, body := encoded(map[string]any{})
	_, err := c.do(ctx, request{op: "create the branch " + branch, method: http.MethodPost,
		address: c.api(r, "/branch/"+url.PathEscape(branch)), kind: "application/json", size: size, body: body})
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusConflict && !e.busy() {
		return nil
	}
	return err
}

// ValidateCard has the hub check a model card, and returns its warnings. What it refuses is an error of kind
// fault.Refused. A hub without this check has no warnings.
func (c *Client) ValidateCard(ctx context.Context, content string) (warnings []string, err error) {
	const op = "check the model card"
	size, body := encoded(map[string]any{"content": content, "repoType": "model"})
	r := request{op: op, method: http.MethodPost, address: c.endpoint.String() + "/api/validate-yaml",
		kind: "application/json", size: size, body: body}
	var a answer
	var found []string
	err = c.retry(ctx, func() (err error) {
		a, found, err = c.validate(ctx, r)
		return err
	})
	var e *Error
	switch {
	case errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed):
		return nil, nil
	case err != nil:
		return nil, err
	case len(found) > 0:
		return nil, fault.Errorf(fault.Refused, "README.md: the hub refuses it:\n  %s", strings.Join(found, "\n  "))
	}
	var v cardAnswer
	if json.Unmarshal(a.data, &v) == nil {
		warnings = c.texts(v.Warnings)
	}
	return warnings, nil
}

// cardAnswer is the answer about a card.
type cardAnswer struct {
	Errors   []cardText `json:"errors"`
	Warnings []cardText `json:"warnings"`
}

type cardText struct {
	Message string `json:"message"`
}

func (c *Client) texts(list []cardText) (texts []string) {
	for _, t := range list[:min(len(list), 20)] {
		if text := c.clean(t.Message); text != "" {
			texts = append(texts, fmt.Sprintf("%q", text))
		}
	}
	return texts
}

// validate makes a request about a card once. found are the errors that the hub lists.
func (c *Client) validate(ctx context.Context, r request) (a answer, found []string, err error) {
	a, err = c.once(ctx, r)
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusBadRequest {
		var v cardAnswer
		json.Unmarshal(e.body, &v)
		if found = c.texts(v.Errors); len(found) > 0 {
			return a, found, nil
		}
	}
	return a, nil, err
}

// Entry is a file of a repository.
type Entry struct {
	Path string
	Size int64
	// SHA256 is that of the content of a file in LFS, "" for others, of which Blob is git's SHA-1. Both are
	// hexadecimal.
	SHA256, Blob string
}

const (
	maxPages = 2_000   // of a tree
	maxFiles = 100_000 // of a repository: the hub's own limit
)

// Tree returns the files of a revision by their paths.
func (c *Client) Tree(ctx context.Context, r Repo, revision string) (map[string]Entry, error) {
	op := "list the files of " + r.String()
	address := c.api(r, "/tree/"+url.PathEscape(revision)+"?recursive=true")
	files := map[string]Entry{}
	for range maxPages {
		a, err := c.do(ctx, request{op: op, method: http.MethodGet, address: address})
		if err != nil {
			return nil, err
		}
		if err := addEntries(op, files, a.data); err != nil {
			return nil, err
		}
		next := nextPage(a.header.Values("Link"))
		if next == "" {
			return files, nil
		}
		u, err := c.endpoint.Parse(next)
		if err != nil || !c.ours(u) {
			return nil, fault.Errorf(fault.Broken, "%s: the next page is at no address of the hub", op)
		}
		address = u.String()
	}
	return nil, fault.Errorf(fault.Broken, "%s: the hub's list does not end after %d pages", op, maxPages)
}

// addEntries adds a page of a tree.
func addEntries(op string, files map[string]Entry, data []byte) error {
	var list []struct {
		Type string `json:"type"`
		OID  string `json:"oid"`
		Size int64  `json:"size"`
		Path string `json:"path"`
		LFS  *struct {
			OID  string `json:"oid"`
			Size int64  `json:"size"`
		} `json:"lfs"`
	}
	if err := decode(op, data, &list); err != nil {
		return err
	}
	for _, e := range list {
		if e.Type != "file" {
			continue
		}
		entry := Entry{Path: e.Path, Size: e.Size, Blob: e.OID}
		if e.LFS != nil {
			entry.SHA256, entry.Size = e.LFS.OID, e.LFS.Size
		}
		if _, twice := files[e.Path]; twice {
			return fault.Errorf(fault.Broken, "%s: the hub lists %q twice", op, e.Path)
		}
		if len(files) == maxFiles {
			return fault.Errorf(fault.Unsupported, "%s: more than %d files", op, maxFiles)
		}
		files[e.Path] = entry
	}
	return nil
}

var linkNext = regexp.MustCompile(`<([^<>]*)>\s*;[^,<]*\brel="?next"?`)

// nextPage returns the address of the next page in the headers Link, "" for none.
func nextPage(links []string) string {
	for _, l := range links {
		if m := linkNext.FindStringSubmatch(l); m != nil {
			return m[1]
		}
	}
	return ""
}

// SampleBytes is how many bytes of a file Modes shows to the hub.
const SampleBytes = 512

// Sample is a file that is to be committed.
type Sample struct {
	Path string
	Size int64
	Head []byte // its first SampleBytes bytes, or all
}

// Mode is how the hub takes a file.
type Mode struct {
	LFS    bool // as an object of the store, else within the commit
	Ignore bool // the repository's .gitignore has it
}

// maxModes is the number of files of one question for their modes.
const maxModes = 100

// Modes asks how the hub takes files, by their paths; pull is true for those of a new pull request.
func (c *Client) Modes(ctx context.Context, r Repo, branch string, pull bool, files []Sample) (map[string]Mode, error) {
	const op = "ask how files are to be sent"
	type file struct {
		Path   string `json:"path"`
		Size   int64  `json:"size"`
		Sample string `json:"sample"`
	}
	address := c.api(r, "/preupload/"+url.PathEscape(branch))
	if pull {
		address += "?create_pr=1"
	}
	modes := map[string]Mode{}
	for len(files) > 0 {
		n := min(len(files), maxModes)
		var list []file
		for _, f := range files[:n] {
			list = append(list, file{f.Path, f.Size, base64.StdEncoding.EncodeToString(f.Head)})
		}
		size, body := encoded(map[string]any{"files": list})
		a, err := c.do(ctx, request{op: op, method: http.MethodPost, kind: "application/json", size: size, body: body,
			address: address})
		if err != nil {
			return nil, err
		}
		if err := addModes(op, modes, files[:n], a.data); err != nil {
			return nil, err
		}
		files = files[n:]
	}
	return modes, nil
}

// addModes adds the answer about some files.
func addModes(op string, modes map[string]Mode, files []Sample, data []byte) error {
	var v struct {
		Files []struct {
			Path   string `json:"path"`
			Mode   string `json:"uploadMode"`
			Ignore bool   `json:"shouldIgnore"`
		} `json:"files"`
	}
	if err := decode(op, data, &v); err != nil {
		return err
	}
	for _, f := range v.Files {
		if f.Mode != "lfs" && f.Mode != "regular" {
			return fault.Errorf(fault.Broken, "%s: %q is to be sent as %.40q, want lfs or regular", op, f.Path, f.Mode)
		}
		modes[f.Path] = Mode{f.Mode == "lfs", f.Ignore}
	}
	for _, f := range files {
		m, ok := modes[f.Path]
		if !ok {
			return fault.Errorf(fault.Broken, "%s: the hub does not answer for %q", op, f.Path)
		}
		if f.Size == 0 {
			m.LFS = false // the store takes no empty object
			modes[f.Path] = m
		}
	}
	return nil
}
