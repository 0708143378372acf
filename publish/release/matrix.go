package release

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/internal/io/disk"
	"ggforge/quantize/calibrate"
	"ggforge/writer"
)

// matrixStep makes the importance matrix from the calibration text.
type matrixStep struct{ stepBase }

func (r *Release) addMatrix() error {
	if r.inputs.calibration == nil {
		return nil
	}
	name, err := r.fileName("imatrix")
	if err != nil {
		return err
	}
	r.matrix = &matrixStep{stepBase{id: id{kindMatrix, "imatrix"}, about: "the importance matrix", as: "imatrix",
		path: name, listed: true}}
	r.add(r.matrix)
	return nil
}

// Key depends on the source and the calibration.
func (s *matrixStep) Key() string {
	r := s.r
	return keyOf("imatrix", r.base, settings(r.plan.Calibration), r.input("calibration"), r.matrixFromBatch(),
		r.holdsOut())
}

// Done compares the file with the state.
func (s *matrixStep) Done(ctx context.Context) (bool, error) { return s.recorded(ctx, s.Key()) }

// saveEvery is the number of chunks after which the sums of an importance matrix are saved.
const saveEvery = 100

// Make collects the matrix as ggeval imatrix does, or makes it together with the models.
func (s *matrixStep) Make(ctx context.Context) error {
	r := s.r
	if r.matrixFromBatch() {
		return r.makeModels(ctx)
	}
	c := r.plan.Calibration
	r.opt.Note("importance matrix: " + s.path)
	e, err := eval.New(r.source)
	if err != nil {
		return err
	}
	run := r.inputs.calibrationRun
	run.Progress = r.textProgress("importance matrix")
	state := filepath.Join(r.dir, stateDir, "imatrix-"+s.Key()[:16]+".state")
	sums, err := e.Calibrate(ctx, run, imatrix.NewSums(run.Chunk), eval.Calibration{
		Importance: eval.Importance{Output: c.ProcessOutput, Every: saveEvery}, State: state,
		Text: sha256.Sum256([]byte(r.inputs.calibration.content(func(...string) {}))),
	})
	if err != nil {
		return err
	}
	if err := s.write(ctx, sums); err != nil {
		return err
	}
	if err := disk.Remove(state); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// write writes the importance matrix of sums.
func (s *matrixStep) write(ctx context.Context, sums *imatrix.Sums) error {
	sums.Datasets = []string{s.r.inputs.calibration.file.Name}
	file, err := sums.Layout(imatrix.FormatGGUF)
	if err != nil {
		return err
	}
	if err := writer.WriteFrom(ctx, s.full(), file.Size, file, nil, s.r.writeOptions(s)); err != nil {
		return err
	}
	return s.r.record(s)
}

// read reads the matrix that Make has written. The caller closes it.
func (s *matrixStep) read(ctx context.Context) (*imatrix.Matrix, error) {
	f, path := s.first()
	m, found, err := readMatrix(ctx, path)
	if err == nil && found.SHA256 != f.SHA256 {
		m.Close()
		return nil, fault.Errorf(fault.Broken,
			"%s: SHA-256 is %s, and was %s when it was made; is another process changing it?", path,
			found.SHA256, f.SHA256)
	}
	return m, err
}

// Predict sets the size, which is exact, and the time by one run of the source.
func (s *matrixStep) Predict(_ context.Context, p *prediction) error {
	file, err := p.sums.Layout(imatrix.FormatGGUF)
	if err != nil {
		return err
	}
	item := s.item()
	item.Bytes, item.Exact, item.Seconds = file.Size, true, p.calibration
	if s.r.choosesBlocks() {
		item.Seconds *= momentsCost
	}
	return nil
}

// expectedMatrix returns the sums of the importance matrix without values.
func (r *Release) expectedMatrix(ctx context.Context) (*imatrix.Sums, error) {
	e, err := eval.New(r.source)
	if err != nil {
		return nil, err
	}
	run := r.inputs.calibrationRun
	collect, err := e.Collector(imatrix.NewSums(run.Chunk), r.plan.Calibration.ProcessOutput)
	if err != nil {
		return nil, err
	}
	sums, err := collect.Expect(ctx, run)
	if err == nil {
		sums.Datasets = []string{r.inputs.calibration.file.Name}
	}
	return sums, err
}

// matrixFromBatch reports whether package batch collects the matrix while it chooses types or blocks.
func (r *Release) matrixFromBatch() bool {
	c := r.plan.Calibration
	return c != nil && c.Text != "" && (r.choosesBlocks() ||
		slices.ContainsFunc(r.plan.Outputs, func(o Output) bool { return o.choosesTypes() }))
}

// choosesBlocks reports whether blocks are chosen with the calibration's text.
func (r *Release) choosesBlocks() bool {
	c := r.plan.Calibration
	return c != nil && c.effort().EncodesBlocks()
}

// effort returns the effort of a plan that has been checked.
func (c *Calibration) effort() calibrate.Effort {
	e, _ := calibrate.ParseEffort(c.Effort)
	return e
}

// holdsOut reports whether the end of the text is held out from all calibration, to measure KL divergence on it.
func (r *Release) holdsOut() bool {
	return slices.ContainsFunc(r.plan.Outputs, func(o Output) bool { return o.KLD > 0 })
}
