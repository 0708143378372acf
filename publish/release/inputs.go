package release

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"ggforge/arch/diffusion"
	"ggforge/checkpoint"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/mmap"
	"ggforge/internal/io/stamp"
	"ggforge/model/digest"
	"ggforge/model/identity"
	"ggforge/publish/card"
)

// inputs holds the inputs of a release besides the source, each read once.
type inputs struct {
	list        []Input // for the manifest, with the source's files
	calibration *text   // nil for none
	evaluation  *text
	matrix      *imatrix.Matrix
	matrixFile  digest.File
	card        card.Options
	files       []string // paths of all inputs, with the source and the plan

	calibrationRun, evaluationRun eval.Run // the texts as tokens of the source
}

// text is a text that a model is run over.
type text struct {
	path string
	data []byte // content of the file, unchanged
	file digest.File
}

// describe returns name, size and sum of a file whose content is in memory.
func describe(path string, data []byte) digest.File {
	in := digest.Held("", path, data)
	return digest.File{Name: in.Name, Bytes: in.Bytes, SHA256: in.SHA256}
}

// readInputs reads the files that the plan names besides the source.
func (r *Release) readInputs(ctx context.Context) error {
	in := &r.inputs
	in.files = slices.Clone(r.source.Files)
	if r.plan.path != "" {
		// otherwise the plan came from flags
		if info, err := disk.Stat(r.plan.path); err == nil && info.Mode().IsRegular() {
			in.files = append(in.files, r.plan.path)
		}
	}
	read := map[string]*text{}
	open := func(path string) (*text, error) {
		if t := read[path]; t != nil || path == "" {
			return t, nil
		}
		info, err := disk.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			err = fault.Errorf(fault.Usage, "%s: want a file", path)
		}
		if err != nil {
			return nil, err
		}
		data, err := texts.Load(path)
		if err != nil {
			return nil, err
		}
		in.files = append(in.files, path)
		read[path] = &text{path, data, describe(path, data)}
		return read[path], nil
	}
	c, e := cmp.Or(r.plan.Calibration, new(Calibration)), cmp.Or(r.plan.Evaluation, new(Evaluation))
	var err error
	if in.calibration, err = open(c.Text); err != nil {
		return err
	}
	if in.evaluation, err = open(e.Text); err != nil {
		return err
	}
	if c.Matrix != "" {
		if in.matrix, in.matrixFile, err = readMatrix(ctx, c.Matrix); err != nil {
			return err
		}
		in.files = append(in.files, c.Matrix)
	}
	if r.opt.Part == 0 { // parts sign nothing
		if err := r.loadSigner(); err != nil {
			return err
		}
	}
	if r.hasCard() {
		err = r.loadCard()
	}
	return err
}

// readMatrix reads the importance matrix in a file. A matrix too large for memory is mapped; then unchanged checks it
// before files made with it get their names.
func readMatrix(ctx context.Context, path string) (*imatrix.Matrix, digest.File, error) {
	m, err := imatrix.Load(path)
	if err != nil {
		return nil, digest.File{}, err
	}
	if data := m.Read(); data != nil { // the file is no longer needed
		if err := m.Close(); err != nil {
			return nil, digest.File{}, err
		}
		return m, describe(path, data), nil
	}
	f, err := digest.OfFile(ctx, path)
	if err != nil {
		m.Close()
	}
	return m, f, err
}

// loadCard reads the card's template and checks that a card can be written.
func (r *Release) loadCard() error {
	about := cmp.Or(r.plan.Card, new(Card))
	cached, _ := card.CachedModel(r.plan.Source)
	opt := card.Options{BaseModel: cmp.Or(about.BaseModel, card.HubModel(r.plan.Source), cached),
		QuantizedBy: about.QuantizedBy, Program: r.opt.Program, Repository: cmp.Or(about.Repository, r.opt.Repository)}
	for _, n := range about.Contexts {
		opt.Contexts = append(opt.Contexts, int64(n))
	}
	if about.Template != "" {
		data, err := mmap.ReadFile(about.Template, "template", maxPlan)
		if err != nil {
			return err
		}
		opt.Template = string(data)
		r.inputs.files = append(r.inputs.files, about.Template)
	}
	r.inputs.card = opt
	return card.Writable(r.dir, opt, r.opt.Force)
}

// unchanged returns an error if an input that is not in memory, the source or a large matrix, has changed since it was
// opened.
func (r *Release) unchanged() error {
	return stamp.All(r.source.Unchanged, r.inputs.matrix.Unchanged)()
}

// hashInputs takes the sums of all inputs. The source is open already: if it changes from then on, no file that is
// made from it gets its name.
func (r *Release) hashInputs(ctx context.Context) error {
	add := func(role string, f digest.File) { r.inputs.list = append(r.inputs.list, Input{role, f}) }
	if checkpoint.IsRemote(r.plan.Source) {
		// The weights are read only once, while they are written. Headers of the files and the server's validators
		// identify them.
		id, err := identity.Of(ctx, r.source)
		if err != nil {
			return err
		}
		add("source", digest.File{Name: r.plan.Source, Bytes: r.source.Bytes, SHA256: id})
	} else {
		files := slices.Clone(r.source.Files)
		slices.Sort(files)
		for _, path := range slices.Compact(files) {
			was, err := r.state.sum(ctx, path)
			if err != nil {
				return err
			}
			add("source", digest.File{Name: filepath.Base(path), Bytes: was.Bytes, SHA256: was.SHA256})
		}
		if err := r.unchanged(); err != nil {
			return err
		}
	}
	r.base = keyOf(r.opt.Program, r.inputs.list, r.plan.Via, r.plan.ModelName)
	if t := r.inputs.calibration; t != nil {
		add("calibration", t.file)
	}
	if r.inputs.matrix != nil {
		add("matrix", r.inputs.matrixFile)
	}
	if t := r.inputs.evaluation; t != nil {
		add("evaluation", t.file)
	}
	return nil
}

// input returns the sum of the first input of a role.
func (r *Release) input(role string) string {
	for _, in := range r.inputs.list {
		if in.Role == role {
			return in.SHA256
		}
	}
	return ""
}

// defaultChunk is the number of tokens of a chunk if the plan has none.
const defaultChunk = 512

// tokenize splits the texts into chunks of tokens. Models that cannot be run and texts that are too short are thus
// errors before anything is made.
func (r *Release) tokenize(context.Context) (err error) {
	in := &r.inputs
	c, e := cmp.Or(r.plan.Calibration, new(Calibration)), cmp.Or(r.plan.Evaluation, new(Evaluation))
	if in.calibrationRun, err = r.chunks(in.calibration, c.Chunk, c.Chunks); err != nil {
		return err
	}
	in.evaluationRun, err = r.chunks(in.evaluation, e.Chunk, e.Chunks)
	return err
}

// chunks returns a text as chunks of tokens of the source, none without a text.
func (r *Release) chunks(t *text, chunk, chunks int) (run eval.Run, err error) {
	if t == nil {
		return run, nil
	}
	if arch := r.source.Metadata.Architecture(); diffusion.Has(arch) {
		return run, fault.Errorf(fault.Unsupported, "%s: image and video models (%s) have no graph here, so no text can "+
			"go through them: a plan for one has no calibration text and no evaluation; ggtool quality measures the "+
			"errors of weights", r.plan.Source, arch)
	}
	if _, err := eval.New(r.source); err != nil {
		return run, err
	}
	v, err := texts.Vocabulary(r.source)
	if err != nil {
		return run, err
	}
	run, _, err = texts.Chunks(r.opt.Warn, r.source, v, t.path, t.content(r.opt.Warn),
		eval.Text{Chunk: cmp.Or(chunk, defaultChunk), Chunks: chunks})
	run.Workers = r.opt.Workers
	return run, err
}

// content returns a text without the newline at its end.
func (t *text) content(warn func(...string)) string { return texts.Text(warn, t.path, t.data, false) }
