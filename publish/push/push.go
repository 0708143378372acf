// Package push publishes a folder, such as a release: to a repository of the Hugging Face hub, or as objects of S3.
//
//	Prepare: names, sizes, links ──► Run: sums, SHA256SUMS, manifest ──► model card ──► repository ──► what is there
//	         ──► large files in parts, several at once ──► one commit ──► the hub's list, compared with the folder
//
// Files that the server has are not sent again: the hub is asked by their sums. The folder is sent as it is, but for
// hidden files (.ggtool-release among them), temporary files and journals. A file of the repository that the folder
// does not have stays there. A commit names the one that it comes after, so that somebody else's commit in between is
// noticed. Nothing is committed where nothing has changed.
//
// The state of an interrupted push is kept in the folder (journal.go), so that the next run sends only what the store
// does not have. A push reads files only: one that changes meanwhile ends it.
package push

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ggforge/checkpoint"
	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/hub"
	"ggforge/publish/release"
)

// Options are the settings of a push. The zero value pushes to what is public of the Hugging Face hub.
type Options struct {
	// Private creates a repository that is not there as a private one. One that is public is refused.
	Private bool
	// PullRequest opens a pull request instead of changing the branch.
	PullRequest bool
	// Message is that of the commit: a line, and more after it. Default: "Upload with ggtool".
	Message string
	// Force replaces objects of S3 that have another content. On the hub the versions before stay in the history.
	Force bool
	// Parallel is the number of parts that are sent at once; default 4. None of them is held in memory.
	Parallel int
	// Workers is the number of files that are read at once for their sums; default 1.
	Workers int
	// Endpoint and Token are the hub's. The token is sent nowhere else.
	Endpoint, Token string
	// S3Endpoint and S3Region are those of the server for s3://BUCKET/PREFIX.
	S3Endpoint, S3Region string
	// Stall is how long a connection may stand still, Pause the time before the first retry: see packages hub and
	// bucket for the defaults.
	Stall, Pause time.Duration

	Warn func(text string)
	Note func(text string) // called with a line about each step, and about pauses
	// Progress, if not nil, is called with what is done. Calls come one at a time.
	Progress func(Progress)
}

// Progress is how far a part of a push is. The total may become smaller, when the server has a file.
type Progress struct {
	Part        string // "read" for the sums, then "send"
	Done, Total int64  // bytes
}

// Result is what a push has done, or would do.
type Result struct {
	To      string `json:"to"`             // hf://ORG/NAME@BRANCH or s3://BUCKET/PREFIX
	Page    string `json:"page,omitempty"` // address of the repository
	Created bool   `json:"created"`        // the repository was not there
	Changed bool   `json:"changed"`        // something was published: a commit, or objects
	Private bool   `json:"private"`
	Commit  string `json:"commit,omitempty"` // the head of the branch afterwards
	// PullRequest is the address of the pull request.
	PullRequest string `json:"pull_request,omitempty"`
	Files       []File `json:"files"`
	// LeftOut are files and folders that are never sent.
	LeftOut []string `json:"left_out"`
	// Others are files of the repository that the folder does not have.
	Others []string `json:"others"`
	// Sent is the number of bytes of files that this run has sent, or with Predict at most would send.
	Sent    int64   `json:"sent_bytes"`
	Seconds float64 `json:"seconds"`
}

// File is a file of the folder.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	State  State  `json:"state"`
}

// State is what happens to a file.
type State string

// The states of files.
const (
	Unchanged State = "unchanged" // the repository has it under this name
	Stored    State = "stored"    // the server has its content: nothing was sent
	Sent      State = "sent"
	ToSend    State = "to send" // with Predict
)

// Push is a push that has been prepared.
type Push struct {
	opt    Options
	folder *folder
	to     string
	repo   hub.Repo
	branch string      // of the hub
	object bucket.Name // of S3

	mu     sync.Mutex
	states map[string]State
}

// IsDestination reports whether a name is that of a place to push to.
func IsDestination(name string) bool { return strings.HasPrefix(name, hub.Scheme) || bucket.Is(name) }

// Check returns an error of kind fault.Usage unless to is a place to push to, with these options: hf://ORG/NAME,
// hf://ORG/NAME@BRANCH or s3://BUCKET/PREFIX. A push to the hub without a token is an error of kind fault.Refused.
// Nothing is read or sent.
func Check(to string, opt Options) error {
	p, err := parse(to, opt)
	if err != nil {
		return err
	}
	return p.mayWrite()
}

// mayWrite returns an error if a token is needed.
func (p *Push) mayWrite() error {
	if p.object.Bucket != "" || p.opt.Token != "" {
		return nil
	}
	return fault.Errorf(fault.Refused,
		"%s: pushing needs a token that may write: HF_TOKEN, or the file that hf auth login writes", p.to)
}

func parse(to string, opt Options) (*Push, error) {
	p := &Push{opt: opt, to: to, states: map[string]State{}}
	p.opt.Endpoint = strings.TrimSuffix(cmp.Or(opt.Endpoint, checkpoint.HubEndpoint), "/")
	p.opt.Message = strings.TrimSpace(cmp.Or(opt.Message, "Upload with ggtool"))
	p.opt.Parallel = cmp.Or(opt.Parallel, 4)
	if opt.Warn == nil {
		p.opt.Warn = func(string) {}
	}
	if opt.Note == nil {
		p.opt.Note = func(string) {}
	}
	var err error
	switch {
	case bucket.Is(to):
		if p.object, err = bucket.Parse(to); err != nil {
			return nil, err
		}
		p.object = p.object.Folder()
		if opt.Private || opt.PullRequest || opt.Message != "" {
			return nil, fault.Errorf(fault.Usage,
				"%s: objects have no pull requests, no messages, and are as private as their bucket", to)
		}
	case strings.HasPrefix(to, hub.Scheme):
		if p.repo, p.branch, err = hub.Parse(to); err != nil {
			return nil, err
		}
		if p.opt.PullRequest && hub.IsPullRequest(p.branch) {
			return nil, fault.Errorf(fault.Usage, "%s: is a pull request already", to)
		}
		p.to = hub.Scheme + p.repo.String() + "@" + p.branch
	default:
		return nil, fault.Errorf(fault.Usage, "%q: want hf://ORG/NAME, hf://ORG/NAME@BRANCH or s3://BUCKET/PREFIX", to)
	}
	if p.opt.Parallel < 1 || p.opt.Parallel > maxParallel {
		return nil, fault.Errorf(fault.Usage, "%d parts at once: want 1 to %d", p.opt.Parallel, maxParallel)
	}
	return p, nil
}

// maxParallel is the largest number of parts that are sent at once.
const maxParallel = 64

// Prepare lists the files of a folder that is to be published. Nothing is sent, and no file is read. Errors:
// fault.Usage for names that the destination does not take, fault.Refused for links, pipes and files that are too
// large, or empty where objects are not, fault.Incomplete for a release that is not finished.
func Prepare(dir, to string, opt Options) (*Push, error) {
	p, err := parse(to, opt)
	if err != nil {
		return nil, err
	}
	least, most, check := int64(0), int64(hub.MaxObject), checkHubName
	if bucket.Is(to) {
		least, most, check = 1, 0, func(name string) error {
			_, err := bucket.Parse(p.object.String() + name)
			return err
		}
	}
	p.folder, err = list(dir, least, most, check)
	return p, err
}

// Run pushes the folder. Errors: fault.Broken for a folder that is not what its lists have, or a file that changes;
// fault.Refused for what the server does not permit, and for a conflict with somebody else's commit.
func (p *Push) Run(ctx context.Context) (*Result, error) {
	start := time.Now()
	run := p.toHub
	if p.object.Bucket != "" {
		run = p.toBucket
	}
	if err := p.mayWrite(); err != nil {
		return nil, err
	}
	s, err := openState(p.folder.dir, p.opt.Warn)
	if err != nil {
		return nil, err
	}
	r, err := run(ctx, s)
	if e := s.close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	p.finish(r)
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// Predict returns what Run would do, without a change on the server. Files whose content the server has elsewhere count
// as files to send.
func (p *Push) Predict(ctx context.Context) (*Result, error) {
	known := (&state{dir: filepath.Join(p.folder.dir, release.StateDir, pushDir)}).sums()
	run := p.predictHub
	if p.object.Bucket != "" {
		run = p.predictBucket
	}
	r, err := run(ctx, known)
	if err != nil {
		return nil, err
	}
	p.finish(r)
	return r, nil
}

// finish adds the files to a result.
func (p *Push) finish(r *Result) {
	r.To, r.LeftOut = p.to, append([]string{}, p.folder.leftOut...)
	r.Others = append([]string{}, r.Others...)
	for _, f := range p.folder.files {
		r.Files = append(r.Files, File{f.Name, f.Bytes, f.SHA256, cmp.Or(p.states[f.Name], Unchanged)})
	}
}

// mark sets the state of a file.
func (p *Push) mark(name string, s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states[name] = s
}

// progress reports progress.
func (p *Push) progress(now Progress) {
	if p.opt.Progress == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opt.Progress(now)
}

// waits reports a pause that is worth a line.
func (p *Push) waits(err error, pause time.Duration) {
	if pause >= 5*time.Second {
		p.opt.Note(fmt.Sprintf("%v; waiting for %v", err, pause.Round(time.Second)))
	}
}
