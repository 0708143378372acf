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
	"ggforge/writer"
)

// addMatrix adds the importance matrix of the calibration's text.
func (r *Release) addMatrix() error {
	if r.inputs.calibration == nil {
		return nil
	}
	name, err := r.named("imatrix")
	if err != nil {
		return err
	}
	r.matrix = r.add(&step{id: id{kindMatrix, "imatrix"}, about: "the importance matrix", as: "imatrix", path: name,
		key: r.matrixKey, make: r.makeMatrix})
	return nil
}

func (r *Release) matrixKey() string {
	return keyOf("imatrix", r.base, settings(r.plan.Calibration), r.input("calibration"), r.inRun(), r.holds())
}

// inRun reports whether the calibration is a part of choosing types or blocks.
func (r *Release) inRun() bool {
	c := r.plan.Calibration
	return c != nil && c.Text != "" && (r.chosen() ||
		slices.ContainsFunc(r.plan.Outputs, func(o Output) bool { return o.target() }))
}

// chosen reports whether blocks are chosen by the calibration's text.
func (r *Release) chosen() bool {
	c := r.plan.Calibration
	return c != nil && (c.Effort == "high" || c.Effort == "best")
}

// holds reports whether a part of the text is held apart to measure divergences with, which all outputs then
// lack.
func (r *Release) holds() bool {
	return slices.ContainsFunc(r.plan.Outputs, func(o Output) bool { return o.KLD > 0 })
}

// saveEvery is after how many chunks the sums of an importance matrix are saved.
const saveEvery = 100

// makeMatrix makes the importance matrix, as ggeval imatrix does, or together with the models.
func (r *Release) makeMatrix(ctx context.Context) error {
	if r.inRun() {
		return r.makeModels(ctx)
	}
	c := r.plan.Calibration
	r.opt.Note("importance matrix: " + r.matrix.path)
	e, err := eval.New(r.source)
	if err != nil {
		return err
	}
	run := r.inputs.calibrationRun
	run.Progress = r.showing("importance matrix")
	kept := filepath.Join(r.dir, stateDir, "imatrix-"+r.matrixKey()[:16]+".state")
	sums, err := e.Calibrate(ctx, run, imatrix.NewSums(run.Chunk), eval.Calibration{
		Importance: eval.Importance{Output: c.ProcessOutput, Every: saveEvery}, State: kept,
		Text: sha256.Sum256([]byte(r.inputs.calibration.content(func(...string) {}))),
	})
	if err != nil {
		return err
	}
	if err := r.writeMatrix(ctx, sums); err != nil {
		return err
	}
	if err := disk.Remove(kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeMatrix writes an importance matrix of sums.
func (r *Release) writeMatrix(ctx context.Context, sums *imatrix.Sums) error {
	sums.Datasets = []string{r.inputs.calibration.file.Name}
	file, err := sums.Layout(imatrix.FormatGGUF)
	if err != nil {
		return err
	}
	if err := writer.WriteFrom(ctx, r.full(r.matrix), file.Size, file, nil, r.writing(ctx, r.matrix)); err != nil {
		return err
	}
	return r.written(ctx, r.matrix)
}

// ownMatrix reads the matrix that the release has made.
func (r *Release) ownMatrix(ctx context.Context) (*imatrix.Matrix, error) {
	f, path := r.first(r.matrix)
	m, found, err := readMatrix(ctx, path)
	if err == nil && found.SHA256 != f.SHA256 {
		m.Close()
		return nil, fault.Errorf(fault.Broken,
			"%s: SHA-256 is %s, and was %s when it was made; is another process changing it?", path,
			found.SHA256, f.SHA256)
	}
	return m, err
}
