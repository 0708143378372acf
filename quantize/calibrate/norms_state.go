package calibrate

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"ggforge/internal/io/disk"
	"ggforge/internal/io/statefile"
)

// maxNormsState bounds the body of a state file of TuneNorms, in bytes: about 100 for each weight of a norm.
const maxNormsState = 1 << 30

// normsKind is the kind of NormOptions.State: writer.NormsMagic.
var normsKind = statefile.Kind{Name: "norms", Version: 1, Max: maxNormsState}

// RemoveNormsState removes the state file (NormOptions.State) of an earlier run, if there is one. A file of that name
// that is no state file is an error.
func RemoveNormsState(path string) error {
	_, _, err := normsKind.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil, errors.Is(err, statefile.ErrDamaged), errors.Is(err, statefile.ErrOther):
		return disk.Remove(path)
	}
	return err
}

// normsState is the body of a state file of TuneNorms.
type normsState struct {
	Step, Kept int
	Weights    map[string]*normWeights
}

// identity describes the run that a state file belongs to.
func (n *tuning) identity() (string, error) {
	if n.opt.State == "" {
		return "", nil
	}
	base, err := n.base.Identity(n.ctx)
	if err != nil {
		return "", err
	}
	m, err := n.model()
	if err != nil {
		return "", err
	}
	made, err := m.Identity(n.ctx)
	all := fmt.Sprintf("%s %s %d %d %d %v %s", base, made, n.opt.Run.Chunk, n.opt.Steps, n.opt.StepTokens, n.opt.Rate,
		tokensHash(n.opt.Run.Tokens))
	return fmt.Sprintf("%x", sha256.Sum256([]byte(all))), err
}

// resume continues after the steps of the state file, if there is one.
func (n *tuning) resume(id string, found *Norms) (bool, error) {
	if n.opt.State == "" {
		return false, nil
	}
	data, err := normsKind.ReadOf(n.opt.State, id)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var s normsState
	if err := json.Unmarshal(data, &s); err != nil {
		return false, fmt.Errorf("%s: %w: %w", n.opt.State, statefile.ErrDamaged, err)
	}
	if s.Step < 0 || s.Step > n.opt.Steps || s.Kept < 0 || s.Kept > s.Step {
		return false, fmt.Errorf("%s: %w: step %d of %d, %d kept", n.opt.State, statefile.ErrDamaged, s.Step, n.opt.Steps,
			s.Kept)
	}
	for name, w := range s.Weights {
		own, err := n.weightsOf(name)
		if err != nil {
			return false, err
		}
		if own == nil || len(own.First) != len(w.First) || len(w.Delta) != len(w.First) || len(w.Kept) != len(w.First) ||
			len(w.Mean) != len(w.First) || len(w.Square) != len(w.First) {
			return false, fmt.Errorf("%s: %w: weights of %q", n.opt.State, statefile.ErrDamaged, name)
		}
		own.Delta, own.Kept, own.Mean, own.Square = w.Delta, w.Kept, w.Mean, w.Square
	}
	n.step, found.Step = s.Step, s.Kept
	return true, nil
}

// save writes the state file.
func (n *tuning) save(id string, found *Norms) error {
	if n.opt.State == "" {
		return nil
	}
	data, err := json.Marshal(normsState{n.step, found.Step, n.weights})
	if err != nil {
		return err
	}
	return normsKind.Write(n.opt.State, id, data)
}
