package writer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"ggforge/fault"
	"ggforge/model"
	"ggforge/model/identity"
)

// Journal makes a write one that can be continued, or shared with other processes.
// Next to the temporary files it keeps a log of the rows that they hold (rowLog).
// A run that is killed leaves both. One whose context was cancelled for ErrTerminated leaves them, too,
// and one that fails or is interrupted does if Resume is set; Kept reports that.
type Journal struct {
	// Facts say what decides the bytes and is not in the layout or among the inputs, such as
	// the program's version and settings of encoders. They are compared one by one,
	// so that a message can say what is different.
	Facts []Fact
	// Resume goes on from what another run of the same write has left, if there is
	// something: rows whose checksums are right are not made again. What a run of
	// another write has left gives an error of kind fault.Refused.
	Resume bool
	// Restart, with Resume, begins anew where another write has left something.
	Restart bool

	// Part, from 1 to Parts, writes only that share of the rows, all shares being as much
	// work. The files keep their temporary names, and any number of processes may write their
	// parts at once: see parts.go. A part goes on from what it has left by itself.
	Part, Parts int
	// Finish checks that all parts are there and whole, and gives the files their names.
	// Parts may be 0 then: as many as there were. What is missing gives an error of kind
	// fault.Incomplete.
	Finish bool
	// PartDir, unless empty, is where parts are kept in files of their own instead of in the output's
	// temporary files: for machines that have no file system in common.
	PartDir string
}

// Fact is something that decides the bytes of a write.
type Fact struct{ Name, Value string }

// OriginFact is the name of facts that say what decides the content of inputs that are fetched from a server.
const OriginFact = "origin"

// AddFacts adds facts to the journal, if there is one.
func (o *Options) AddFacts(name string, values ...string) {
	if o.Journal == nil {
		return
	}
	j := *o.Journal
	j.Facts = slices.Clip(j.Facts)
	for _, v := range values {
		j.Facts = append(j.Facts, Fact{name, v})
	}
	o.Journal = &j
}

// AddModel adds what says which model the tensors are of, if there is a journal.
func (o *Options) AddModel(ctx context.Context, m *model.Model) error {
	if o.Journal == nil {
		return nil
	}
	id, err := identity.Of(ctx, m)
	if err != nil {
		return err
	}
	o.AddFacts("model, by header and rows,", id)
	o.AddFacts(OriginFact, m.Origin...)
	return nil
}

// ErrTerminated is the cause (context.Cause) of a context that is cancelled because the machine
// is going to be taken away: a write with a Journal leaves what it has.
var ErrTerminated = errors.New("terminated")

// keptError is the error of a write that has left its temporary files to a later one.
type keptError struct{ error }

func (k *keptError) Unwrap() error { return k.error }

// Keep returns the error of a run that has left files to a later one: Kept finds it.
func Keep(err error) error { return &keptError{err} }

// Keeps reports whether files that another run can go on from stay although a run with these options, or
// the write that follows, does not succeed.
func (o *Options) Keeps(ctx context.Context) bool { return o.Journal.keeps(ctx) }

// Continued notes that a file is one that another run can go on from, or with gone that it is no longer there:
// RemovePartials treats it like those of a Journal with or without Resume.
func (o *Options) Continued(name string, gone bool) {
	if gone || o.Journal.keeps(context.Background()) {
		finished(name)
	} else {
		unfinish(name, true)
	}
}

// Kept reports whether err is of a write that another one can go on from.
func Kept(err error) bool { return errors.As(err, new(*keptError)) }

// shared reports whether the write is a part, or made of parts.
func (j *Journal) shared() bool { return j != nil && (j.Part > 0 || j.Finish) }

// apart reports whether parts are in files of their own.
func (j *Journal) apart() bool { return j.shared() && j.PartDir != "" }

// fetched reports whether inputs come from a server: files are copies then, made anew by each run.
func (j *Journal) fetched() bool {
	return slices.ContainsFunc(j.Facts, func(f Fact) bool { return f.Name == OriginFact })
}

// keeps reports whether temporary files stay although the write has not succeeded.
func (j *Journal) keeps(ctx context.Context) bool {
	return j != nil && (j.Resume || j.shared() || errors.Is(context.Cause(ctx), ErrTerminated))
}

// check returns an error of kind fault.Usage if the fields contradict each other.
func (j *Journal) check() error {
	switch {
	case j == nil:
	case j.Part < 0 || j.Parts < 0 || j.Part > j.Parts || j.Part == 0 && !j.Finish && j.Parts > 0:
		return fault.Errorf(fault.Usage, "part %d of %d: want 1 to %[2]d", j.Part, j.Parts)
	case j.Finish && j.Part > 0:
		return fault.Errorf(fault.Usage, "part %d is to be written, and all parts are to be finished: want one of them",
			j.Part)
	}
	return nil
}

const (
	// journalMagic begins every journal.
	journalWords = "ggforge journal "
	journalMagic = journalWords + "3\n"
	// maxJournalHead bounds what is read of a journal's head: a hundred bytes for each of
	// 100,000 inputs.
	maxJournalHead = 16 << 20
)

// head returns how the journal of a set begins: the magic, the CRC-32C of the rest in hexadecimal, a space, facts as
// one line of JSON.
func (s *set) head(facts []Fact) []byte {
	text, err := json.Marshal(append(slices.Clip(facts), s.facts()...))
	if err != nil {
		panic(err) // texts
	}
	text = append(text, '\n')
	return fmt.Appendf(nil, "%s%s %s", journalMagic, headSum(text), text)
}

// layoutFact begins the names of facts about the files of a set.
const layoutFact = "layout of "

// facts returns what the layout of the set is.
func (s *set) facts() (list []Fact) {
	for _, f := range s.files {
		h := sha256.New()
		h.Write(f.header())
		for _, t := range f.tensors {
			fmt.Fprintf(h, "%q %d %d %v %d %v\n", t.Name, t.Type, t.Source.Type(), t.Source.NE(), t.off, t.swap)
		}
		list = append(list, Fact{layoutFact + filepath.Base(f.path),
			fmt.Sprintf("%d bytes, %x", f.size, h.Sum(nil)[:16])})
	}
	return list
}

// facts returns what the caller says and what the inputs are. Parts may be written by machines that
// have copies of the inputs: times of modification are not compared then.
func (j *Journal) facts(inputs []string) ([]Fact, error) {
	list := slices.Clone(j.Facts)
	fetched := j.fetched()
	seen := map[string]bool{}
	for _, path := range inputs {
		if seen[path] {
			continue
		}
		seen[path] = true
		id, err := identity.OfFile(path)
		if errors.Is(err, identity.ErrIrregular) {
			continue
		}
		if err != nil {
			return nil, err
		}
		value := id.String()
		if !j.shared() && !fetched {
			value += ", modified " + id.Modified.UTC().Format(time.RFC3339Nano)
		}
		list = append(list, Fact{"input " + filepath.Base(path), value})
	}
	return list, nil
}

// readHead reads how a journal begins. It is torn if there is no more than a beginning
// of it, or not what its checksum says: the disk has not got all that was written when the power went.
func readHead(f io.Reader) (head []byte, torn bool, err error) {
	head = make([]byte, 0, 4096)
	for {
		head = slices.Grow(head, 4096)
		n, err := f.Read(head[len(head):cap(head)])
		old := len(head)
		head = head[:old+n]
		from := max(old, len(journalMagic))
		if from < len(head) {
			if i := bytes.IndexByte(head[from:], '\n'); i >= 0 {
				if head = head[:from+i+1]; wholeHead(head) {
					return head, false, nil
				}
				return nil, true, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, true, nil
		case err != nil:
			return nil, false, err
		case len(head) > maxJournalHead:
			return head, false, nil // which no head is
		}
	}
}

// wholeHead reports whether the checksum of a head is right. What does not begin as one has none.
func wholeHead(head []byte) bool {
	text, ok := bytes.CutPrefix(head, []byte(journalMagic))
	if !ok {
		return bytes.IndexByte(head, 0) < 0 // zeros are what the disk has not got
	}
	sum, text, ok := bytes.Cut(text, []byte(" "))
	return ok && string(sum) == headSum(text)
}

// headSum returns the checksum of the facts, with the end of line, as a head has it.
func headSum(text []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)) }

// parseHead returns the facts of a head.
func parseHead(head []byte) (facts []Fact, err error) {
	text, ok := bytes.CutPrefix(head, []byte(journalMagic))
	if !ok && bytes.HasPrefix(head, []byte(journalWords)) {
		return nil, fault.Errorf(fault.Refused, "made by another version; remove it to begin anew")
	}
	if !ok {
		return nil, fault.Errorf(fault.Broken, "begins with %q, want %q", head[:min(len(head), len(journalMagic))],
			journalMagic)
	}
	if len(text) > maxJournalHead {
		return nil, fault.Errorf(fault.Broken, "its first line has more than %d bytes", maxJournalHead)
	}
	_, text, _ = bytes.Cut(text, []byte(" "))
	if err := json.Unmarshal(text, &facts); err != nil {
		return nil, fault.Errorf(fault.Broken, "its first line is not a list of facts: %w", err)
	}
	return facts, nil
}

// sameRun returns an error of kind fault.Refused, which says what is different, unless a journal's head is
// the one that it has to be.
func sameRun(name string, found, want []byte) error {
	if bytes.Equal(found, want) {
		return nil
	}
	had, err := parseHead(found)
	if err != nil {
		return fmt.Errorf("%s: no journal of a write of this version: %w", name, err)
	}
	has, err := parseHead(want)
	if err != nil {
		return err
	}
	return fault.Errorf(fault.Refused, "%s: another run has left this: %s", name, difference(had, has))
}

// difference says what the first facts are that are not the same.
func difference(had, has []Fact) string {
	value := func(list []Fact, name string) (string, bool) {
		i := slices.IndexFunc(list, func(f Fact) bool { return f.Name == name })
		if i < 0 {
			return "", false
		}
		return list[i].Value, true
	}
	var texts []string
	for _, f := range has {
		if old, ok := value(had, f.Name); !ok {
			texts = append(texts, fmt.Sprintf("%s is %s, and was not there", f.Name, f.Value))
		} else if old != f.Value {
			texts = append(texts, fmt.Sprintf("%s was %s, and is %s", f.Name, old, f.Value))
		}
	}
	for _, f := range had {
		if _, ok := value(has, f.Name); !ok {
			texts = append(texts, fmt.Sprintf("%s was %s, and is not there", f.Name, f.Value))
		}
	}
	if len(texts) == 0 {
		return "the same things come in another order"
	}
	return fault.List(texts)
}

// partName returns the name of a part.
func partName(k, n int) string { return strconv.Itoa(k) + "-of-" + strconv.Itoa(n) }
