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

// Journal makes a write resumable, or shares it with other processes. Next to the temporary files it keeps a log of the
// rows in them (rowLog). Both stay if the process is killed, if the context is cancelled with cause ErrTerminated and,
// with Resume, if the write fails or is interrupted; see Resumable.
type Journal struct {
	// Facts decide the bytes and are neither in the layout nor among the inputs, such as the program's version and
	// settings of encoders. They are compared one by one, so that a message can name those that differ.
	Facts []Fact
	// Resume continues an interrupted run of the same write, if there is one: rows with correct checksums are not
	// written again. Temporary files of a different write are an error of kind fault.Refused.
	Resume bool
	// Restart, with Resume, replaces the temporary files of a different write.
	Restart bool

	// Part, from 1 to Parts, writes only that share of the rows; shares are equal in work. The files keep their
	// temporary names, and any number of processes may write their parts at once: see parts.go. An interrupted part
	// always resumes.
	Part, Parts int
	// Finish checks that all parts are complete, and gives the files their names. Parts may be 0 then: their number is
	// read from the run. Missing rows are an error of kind fault.Incomplete.
	Finish bool
	// PartDir, unless empty, is the directory for parts in files of their own instead of in the output's temporary
	// files: for machines without a shared file system.
	PartDir string
	// Store, unless nil, has the outputs of a write in parts: they become objects by pieces that the parts send. See
	// objects.go.
	Store Store
}

// Fact is something that decides the bytes of a write.
type Fact struct{ Name, Value string }

// OriginFact is the name of facts that identify inputs fetched from a server.
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

// AddModel adds the identity of the tensors' model to the journal, if there is one.
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

// ErrTerminated is the cause (context.Cause) of a context that is cancelled because the machine is about to be taken
// away: a write with a Journal keeps its temporary files.
var ErrTerminated = errors.New("terminated")

// resumableError is the error of a run that another one can resume.
type resumableError struct{ error }

func (r *resumableError) Unwrap() error { return r.error }

// MarkResumable marks err as the error of a run whose state files stay for a later run: see Resumable.
func MarkResumable(err error) error { return &resumableError{err} }

// Resumable reports whether the state of the run that returned err stays, so that another run can resume it.
func Resumable(err error) bool { return errors.As(err, new(*resumableError)) }

// KeepsState reports whether a run with these options keeps its state for a later run if it fails.
func (o *Options) KeepsState(ctx context.Context) bool { return o.Journal.keeps(ctx) }

// RegisterState makes RemovePartials treat a state file, from which another run can resume, like the files of a
// Journal.
func (o *Options) RegisterState(name string) { o.Journal.register(name) }

// UnregisterState undoes RegisterState.
func (o *Options) UnregisterState(name string) { dropTemporary(name) }

// register registers a temporary file with RemovePartials, or unregisters it if it has to stay.
func (j *Journal) register(name string) {
	if j.keeps(context.Background()) {
		dropTemporary(name)
	} else {
		addTemporary(name, true)
	}
}

// shared reports whether the write is a part, or made of parts.
func (j *Journal) shared() bool { return j != nil && (j.Part > 0 || j.Finish) }

// inOwnFiles reports whether parts are in files of their own.
func (j *Journal) inOwnFiles() bool { return j.shared() && j.PartDir != "" }

// inStore reports whether the parts send pieces of objects.
func (j *Journal) inStore() bool { return j.shared() && j.Store != nil }

// fetched reports whether inputs come from a server: their files are copies then, which each run creates anew.
func (j *Journal) fetched() bool {
	return slices.ContainsFunc(j.Facts, func(f Fact) bool { return f.Name == OriginFact })
}

// keeps reports whether temporary files stay if the write fails.
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
		return fault.Errorf(fault.Usage, "part %d and Finish exclude each other",
			j.Part)
	case j.Store != nil && j.PartDir != "":
		return fault.Errorf(fault.Usage, "parts are pieces of objects, or files in %s: want one of them", j.PartDir)
	}
	return nil
}

const (
	// journalMagic begins every journal, journalWords those of other versions, too.
	journalWords = "ggforge journal "
	journalMagic = journalWords + "3\n"
	// maxJournalHead bounds the head of a journal: a hundred bytes for each of 100,000 inputs.
	maxJournalHead = 16 << 20
)

// head returns the first line of the set's journal, after the magic: the CRC-32C of the facts in hexadecimal, a space,
// the facts as one line of JSON.
func (s *set) head(facts []Fact) []byte {
	text, err := json.Marshal(append(slices.Clip(facts), s.facts()...))
	if err != nil {
		panic(err) // never: strings
	}
	text = append(text, '\n')
	return fmt.Appendf(nil, "%s%s %s", journalMagic, headSum(text), text)
}

// layoutFact begins the names of facts about the files of a set.
const layoutFact = "layout of "

// facts returns the layout of the set as facts: sizes and hashes.
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

// facts returns the caller's facts and the identity of the inputs. Parts may be written by machines with copies of the
// inputs: modification times are not compared then.
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

// readHead reads the head of a journal. It is torn if it is incomplete or its checksum is wrong: after a power failure
// the disk may not have all that was written.
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
			return head, false, nil // too long for a head: parseHead refuses it
		}
	}
}

// wholeHead reports whether the checksum of a head is right. Text without the magic has no checksum.
func wholeHead(head []byte) bool {
	text, ok := bytes.CutPrefix(head, []byte(journalMagic))
	if !ok {
		return bytes.IndexByte(head, 0) < 0 // zeros are unwritten parts of the file
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
		return nil, fault.Errorf(fault.Refused, "made by another version of ggforge; remove it to start again")
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

// sameRun returns an error of kind fault.Refused with the facts that differ, unless the head found in a journal is the
// wanted one.
func sameRun(name string, found, want []byte) error {
	if bytes.Equal(found, want) {
		return nil
	}
	had, err := parseHead(found)
	if err != nil {
		return fmt.Errorf("%s: not a journal of this version of ggforge: %w", name, err)
	}
	has, err := parseHead(want)
	if err != nil {
		return err
	}
	return fault.Errorf(fault.Refused, "%s: belongs to a different run: %s", name, difference(had, has))
}

// difference describes the first facts that differ.
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
			texts = append(texts, fmt.Sprintf("%s is %s, and was not set", f.Name, f.Value))
		} else if old != f.Value {
			texts = append(texts, fmt.Sprintf("%s was %s, and is %s", f.Name, old, f.Value))
		}
	}
	for _, f := range had {
		if _, ok := value(has, f.Name); !ok {
			texts = append(texts, fmt.Sprintf("%s was %s, and is not set", f.Name, f.Value))
		}
	}
	if len(texts) == 0 {
		return "the same facts in another order"
	}
	return fault.List(texts)
}

// partName returns the name of a part.
func partName(k, n int) string { return strconv.Itoa(k) + "-of-" + strconv.Itoa(n) }
