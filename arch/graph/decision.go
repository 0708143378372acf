package graph

// Kinds is the number of kinds of questions of a Decision: choice, score and noul (yes or no).
const Kinds = 3

// Decision is the head of a model that scores the tokens of a prompt by which options are marked (LFM2's d1-omni, Laya,
// Julia): the last layers of the file. They run after Final, once for each kind of question, on its states plus the
// kind's row of token_types. The score of a token is cls.output·gelu(cls·norm(x)), with the norm cls.norm and GELU of the
// error function. The scores, one for each kind, are the model's states.
type Decision struct {
	Layers Num // how many there are; 0 for a file without such a head
	Norm   NormKind
	Layer  []Step // one layer
}

func (Decision) second() {}

// decision returns the head of a model that decides; ok is false without one.
func (f *facts) decision() (x Decision, ok bool) {
	x, ok = f.model.Second.(Decision)
	return x, ok
}

// countDecision returns the number of layers of a Decision, which the other layers have to precede.
func (d *Decl) countDecision() int64 {
	x, ok := d.decision()
	if !ok {
		return 0
	}
	n := d.Size(x.Layers)
	if d.err == nil && n >= int64(d.layers) {
		d.broken("%d layers of the head, of %d in all%s", n, d.layers, d.describe(d.used))
	}
	return n
}

// decide declares the layers of a Decision, and the tensors after them.
func (d *Decl) decide(x Decision) {
	if d.decisionLayers == 0 {
		return
	}
	d.layer, d.used = -1, nil
	d.checkNumbers(x.Norm.Eps)
	embd := d.Size("n_embd")
	d.weight(Yes, "token_types", KernelRole, embd, Kinds)
	d.vector(Yes, "cls.norm", embd)
	d.linear(Yes, "cls", Other, embd, embd)
	d.linear(Yes, "cls.output", Other, embd, 1)
	d.deciding = true
	for i := range d.decisionLayers {
		if d.err != nil {
			return
		}
		d.layer, d.pass = d.layers+i, d.layers+i
		d.steps(x.Layer)
	}
	d.deciding = false
}

// DecisionLayers returns the number of layers of a Decision, 0 without one. They follow the others.
func (d *Decl) DecisionLayers() int { return d.decisionLayers }
