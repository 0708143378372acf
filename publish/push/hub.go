package push

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/hub"
)

const (
	// rounds is how often a commit is tried that somebody else's commits, or lost answers, come before.
	rounds = 6
	// treeTries is how often the hub is asked until it shows what it has made: a repository, a commit.
	treeTries = 4
	// attributes is the file of a repository that the hub changes by itself.
	attributes = ".gitattributes"
)

// toRepository is a push to a repository.
type toRepository struct {
	*Push
	c      *hub.Client
	state  *state
	to     string // the branch that the next commit changes
	head   string // its commit, "" while there is no repository
	tree   map[string]hub.Entry
	opens  bool // the next commit opens a pull request
	modes  map[string]hub.Mode
	stored map[string]bool // objects that the store has, by sum
	result *Result
}

// begin looks at the repository. create creates what is not there.
func (p *Push) begin(ctx context.Context, create bool) (r *toRepository, err error) {
	r = &toRepository{Push: p, to: p.branch, opens: p.opt.PullRequest, stored: map[string]bool{},
		modes: map[string]hub.Mode{}, result: &Result{}, tree: map[string]hub.Entry{}}
	if r.c, err = hub.New(hub.Options{Endpoint: p.opt.Endpoint, Token: p.opt.Token, Stall: p.opt.Stall,
		Pause: p.opt.Pause, Waits: p.waits}); err != nil {
		return nil, err
	}
	r.result.Page = r.c.Page(p.repo)
	info, err := r.c.Info(ctx, p.repo, p.branch)
	if errors.Is(err, hub.ErrNoRepository) {
		r.result.Created = true
		if !create {
			r.result.Private = p.opt.Private
			return r, nil
		}
		if r.result.Created, err = r.c.Create(ctx, p.repo, p.opt.Private); err != nil {
			return nil, explained(err)
		}
		if r.result.Created {
			p.opt.Note("created: " + r.result.Page)
		}
		info, err = r.c.Info(ctx, p.repo, p.branch)
		for try := 1; errors.Is(err, hub.ErrNoRepository) && try < treeTries; try++ { // not everywhere yet
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(r.pause() << try):
			}
			info, err = r.c.Info(ctx, p.repo, p.branch)
		}
	}
	if errors.Is(err, hub.ErrNoBranch) && !hub.IsPullRequest(p.branch) {
		if !create {
			return r, nil
		}
		if err := r.c.Branch(ctx, p.repo, p.branch); err != nil {
			return nil, explained(err)
		}
		info, err = r.c.Info(ctx, p.repo, p.branch)
	}
	if err != nil {
		return nil, explained(err)
	}
	if p.opt.Private && !info.Private {
		return nil, fault.Errorf(fault.Refused, "%s: is public, and is to be private", r.result.Page)
	}
	r.head, r.result.Private = info.Head, info.Private
	r.tree, err = r.c.Tree(ctx, p.repo, r.head)
	return r, err
}

// explained adds advice to an error about access.
func explained(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; the token needs the right to write to this repository", err)
	}
	return err
}

// checkCard has the hub check the model card.
func (r *toRepository) checkCard(ctx context.Context) error {
	f := r.folder.find(CardName)
	if f == nil {
		r.opt.Warn("the folder has no " + CardName + ": the model will have no card")
		return nil
	}
	if f.Bytes > hub.MaxRegular {
		return nil // the hub takes it as a file
	}
	text, err := f.whole()
	if err != nil {
		return err
	}
	warnings, err := r.c.ValidateCard(ctx, strings.ToValidUTF8(string(text), "\uFFFD"))
	for _, w := range warnings {
		r.opt.Warn(CardName + ": the hub says " + w)
	}
	return err
}

// has reports whether the repository has a file under its name.
func (r *toRepository) has(f *file, tree map[string]hub.Entry) (bool, error) {
	e, ok := tree[f.Name]
	switch {
	case !ok || e.Size != f.Bytes:
		return false, nil
	case e.SHA256 != "":
		return e.SHA256 == f.SHA256, nil
	case f.Bytes > hub.MaxRegular:
		return false, nil
	}
	if f.blob == "" {
		content, err := f.whole()
		if err != nil {
			return false, err
		}
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", len(content))
		h.Write(content)
		f.blob = hex.EncodeToString(h.Sum(nil))
	}
	return e.Blob == f.blob, nil
}

// todo returns the files that the repository does not have.
func (r *toRepository) todo() (list []*file, err error) {
	for _, f := range r.folder.files {
		same, err := r.has(f, r.tree)
		if err != nil {
			return nil, err
		}
		if !same {
			list = append(list, f)
		}
	}
	return list, nil
}

// toHub pushes to a repository of the hub.
func (p *Push) toHub(ctx context.Context, s *state) (*Result, error) {
	r, err := p.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	defer r.c.Close()
	r.state = s
	known := s.sums()
	if err := p.prepare(ctx, known); err != nil {
		return nil, err
	}
	if err := s.keepSums(known, p.folder); err != nil {
		return nil, err
	}
	if err := r.checkCard(ctx); err != nil {
		return nil, err
	}
	if done, err := r.opened(ctx); done || err != nil {
		return r.result, err
	}
	if err := r.rounds(ctx); err != nil {
		return nil, err
	}
	r.result.Commit = r.head
	for _, name := range slices.Sorted(maps.Keys(r.tree)) {
		if name != attributes && p.folder.find(name) == nil {
			r.result.Others = append(r.result.Others, name)
		}
	}
	return r.result, nil
}

// destination identifies a repository and its branch for the state.
func (r *toRepository) destination() string { return r.opt.Endpoint + " " + r.Push.to }

// opened reports whether an earlier run has opened a pull request with the same files.
func (r *toRepository) opened(ctx context.Context) (bool, error) {
	if !r.opens {
		return false, nil
	}
	was := r.state.pull(r.destination())
	if was == nil {
		return false, nil
	}
	info, err := r.c.Info(ctx, r.repo, was.Branch)
	if err != nil {
		return false, ctx.Err() // it is no more: a new one
	}
	tree, err := r.c.Tree(ctx, r.repo, info.Head)
	if err != nil {
		return false, err
	}
	for _, f := range r.folder.files {
		if same, err := r.has(f, tree); !same || err != nil {
			return false, err
		}
	}
	r.opt.Note("the pull request of an earlier run has these files")
	r.result.PullRequest, r.result.Commit = was.URL, info.Head
	return true, nil
}

// rounds sends and commits until the repository has all files.
func (r *toRepository) rounds(ctx context.Context) error {
	failed := 0
	for {
		todo, err := r.todo()
		if err != nil || len(todo) == 0 {
			return err
		}
		if err := r.ask(ctx, todo); err != nil {
			return err
		}
		if err := r.send(ctx, todo); err != nil {
			return err
		}
		made, err := r.commit(ctx, todo)
		if err != nil {
			return err
		}
		if made {
			continue
		}
		if failed++; failed == rounds {
			return fmt.Errorf("%s: no commit after %d tries: others change it, or the hub's answers are lost",
				r.Push.to, rounds)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.pause() << failed):
		}
	}
}

func (r *toRepository) pause() time.Duration {
	if r.opt.Pause > 0 {
		return r.opt.Pause
	}
	return time.Second
}

// ask asks the hub how it takes files.
func (r *toRepository) ask(ctx context.Context, todo []*file) error {
	var samples []hub.Sample
	for _, f := range todo {
		if _, ok := r.modes[f.Name]; ok {
			continue
		}
		head, err := f.head(hub.SampleBytes)
		if err != nil {
			return err
		}
		samples = append(samples, hub.Sample{Path: f.Name, Size: f.Bytes, Head: head})
	}
	if len(samples) == 0 {
		return nil
	}
	modes, err := r.c.Modes(ctx, r.repo, r.to, r.opens, samples)
	if err != nil {
		return explained(err)
	}
	for _, s := range samples {
		m := modes[s.Path]
		switch {
		case m.Ignore:
			return fault.Errorf(fault.Refused, "%s: the repository's .gitignore names it, so the hub would not take it",
				s.Path)
		case !m.LFS && s.Size > hub.MaxRegular:
			return fault.Errorf(fault.Refused, "%s: has %d bytes, and the hub takes it as text, at most %d bytes: "+
				"a line in the repository's .gitattributes makes it a large file", s.Path, s.Size, hub.MaxRegular)
		}
		r.modes[s.Path] = m
	}
	return nil
}

// chunk returns the files of the next commit: large files first, the card last, so that it never names what is not
// there.
func (r *toRepository) chunk(todo []*file) []*file {
	rank := func(f *file) int {
		switch {
		case f.Name == CardName:
			return 2
		case r.modes[f.Name].LFS:
			return 0
		}
		return 1
	}
	todo = slices.Clone(todo)
	slices.SortStableFunc(todo, func(a, b *file) int { return rank(a) - rank(b) })
	content := int64(0)
	for i, f := range todo {
		if !r.modes[f.Name].LFS {
			content += f.Bytes
		}
		if i == hub.MaxFiles || i > 0 && content > hub.MaxContent {
			return todo[:i]
		}
	}
	return todo
}

// commit commits some of the files, and reports whether the repository has them. Without an error and without them,
// somebody else has committed other files, or the answer was lost: then head and tree are those of now.
func (r *toRepository) commit(ctx context.Context, todo []*file) (bool, error) {
	list := r.chunk(todo)
	summary, more, _ := strings.Cut(r.opt.Message, "\n")
	change := hub.Change{Summary: summary, Description: strings.TrimSpace(more), Parent: r.head, PullRequest: r.opens}
	for _, f := range list {
		if err := f.stamp.Check(); err != nil {
			return false, err
		}
		a := hub.Added{Path: f.Name, Object: hub.Object{SHA256: f.SHA256, Size: f.Bytes}}
		if !r.modes[f.Name].LFS {
			a.Content = f.whole
		}
		change.Files = append(change.Files, a)
	}
	made, err := r.c.Commit(ctx, r.repo, r.to, change)
	switch {
	case err == nil:
		return true, r.committed(ctx, list, made)
	case ctx.Err() != nil:
		return false, ctx.Err()
	case r.opens && hub.Unsure(err):
		return false, fmt.Errorf("%w; the pull request may have been opened: look at %s before another try", err,
			r.result.Page)
	case !hub.Unsure(err) && !hub.Stale(err):
		return false, explained(err)
	}
	r.opt.Note(fmt.Sprintf("%v; looking whether it was made", err))
	return r.look(ctx, todo, list, err)
}

// committed reads the hub's list after a commit: it has the files, or there is an error.
func (r *toRepository) committed(ctx context.Context, list []*file, made hub.Made) error {
	if r.opens {
		r.to, r.opens = made.Branch, false
		r.result.PullRequest = made.PullRequest
		if err := r.state.keepPull(r.destination(), pull{made.Branch, made.PullRequest}); err != nil {
			return err
		}
	}
	r.result.Changed = true
	for try := 1; ; try++ {
		tree, err := r.c.Tree(ctx, r.repo, made.Commit)
		if err != nil {
			return err
		}
		missing, err := r.missing(list, tree)
		if err != nil {
			return err
		}
		if missing == "" {
			r.head, r.tree = made.Commit, tree
			r.sent(list)
			return nil
		}
		if try == treeTries {
			return fmt.Errorf("%s: the hub has made commit %s, and %s is not in it as it was sent", r.Push.to,
				made.Commit, missing)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.pause() << try):
		}
	}
}

// sent marks files of a commit that came with it.
func (r *toRepository) sent(list []*file) {
	for _, f := range list {
		if !r.modes[f.Name].LFS {
			r.mark(f.Name, Sent)
			r.result.Sent += f.Bytes
		}
	}
}

// missing returns the name of a file of a list that a tree does not have, "" for none.
func (r *toRepository) missing(list []*file, tree map[string]hub.Entry) (string, error) {
	for _, f := range list {
		if same, err := r.has(f, tree); !same || err != nil {
			return f.Name, err
		}
	}
	return "", nil
}

// look looks at the branch after a commit whose answer is lost or which somebody else's came before: the error err.
func (r *toRepository) look(ctx context.Context, todo, list []*file, err error) (bool, error) {
	info, infoErr := r.c.Info(ctx, r.repo, r.to)
	if infoErr != nil {
		return false, infoErr
	}
	if info.Head == r.head {
		return false, nil
	}
	tree, treeErr := r.c.Tree(ctx, r.repo, info.Head)
	if treeErr != nil {
		return false, treeErr
	}
	missing, sumErr := r.missing(list, tree)
	if sumErr != nil {
		return false, sumErr
	}
	before := r.tree
	if missing == "" {
		r.head, r.tree, r.result.Changed = info.Head, tree, true
		r.sent(list)
		return true, nil
	}
	for _, f := range todo {
		now, then := tree[f.Name], before[f.Name]
		same, sumErr := r.has(f, tree)
		if sumErr != nil {
			return false, sumErr
		}
		if now != then && !same {
			return false, fault.Errorf(fault.Refused, "%s: somebody else has changed %s meanwhile (commit %s): "+
				"nothing was committed; push again to replace it", r.Push.to, f.Name, info.Head)
		}
	}
	r.head, r.tree = info.Head, tree
	clear(r.modes) // by the attributes that the other commit may have changed
	return false, nil
}

// predictHub returns what toHub would do.
func (p *Push) predictHub(ctx context.Context, known *sums) (*Result, error) {
	r, err := p.begin(ctx, false)
	if err != nil {
		return nil, err
	}
	defer r.c.Close()
	if err := p.prepare(ctx, known); err != nil {
		return nil, err
	}
	if err := r.checkCard(ctx); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, e := range r.tree {
		there[e.SHA256] = true
	}
	todo, err := r.todo()
	for _, f := range todo {
		if there[f.SHA256] {
			p.mark(f.Name, Stored)
			continue
		}
		p.mark(f.Name, ToSend)
		r.result.Sent += f.Bytes
	}
	for _, name := range slices.Sorted(maps.Keys(r.tree)) {
		if name != attributes && p.folder.find(name) == nil {
			r.result.Others = append(r.result.Others, name)
		}
	}
	r.result.Changed, r.result.Commit = len(todo) > 0, r.head
	return r.result, err
}
