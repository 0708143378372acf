package torch

import "math"

// lookUp pushes the value of a Python name.
func (m *machine) lookUp(op byte) error {
	var module, name string
	var err error
	if op == opGlobal {
		if module, err = m.line(); err == nil {
			name, err = m.line()
		}
		if err != nil {
			return err
		}
	} else {
		n, err := m.pop()
		if err != nil {
			return err
		}
		p, err := m.pop()
		if err != nil {
			return err
		}
		var ok1, ok2 bool
		module, ok1 = p.(string)
		name, ok2 = n.(string)
		if !ok1 || !ok2 {
			return m.broken("the name of a global is %s of %s, want strings", kind(n), kind(p))
		}
	}
	v, err := m.global(module, name)
	m.push(v)
	return err
}

// reduce calls one of the functions.
func (m *machine) reduce() error {
	args, err := m.pop()
	if err != nil {
		return err
	}
	f, err := m.pop()
	if err != nil {
		return err
	}
	call, ok := f.(*function)
	t, isTuple := args.(*tuple)
	switch {
	case !ok:
		return m.refused("calls %s", kind(f))
	case !isTuple:
		return m.broken("calls %s with %s, want a tuple", call.name, kind(args))
	}
	v, err := call.call(m, t.items)
	m.push(v)
	return err
}

// build ignores the attributes of a dict (such as the versions of a model's modules), which do not concern its tensors.
func (m *machine) build() error {
	state, err := m.pop()
	if err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	if _, ok := to.(*dict); !ok {
		return m.refused("sets the state of %s, want that of a dict", kind(to))
	}
	if _, ok := state.(*dict); !ok {
		return m.broken("the state of a dict is %s, want a dict", kind(state))
	}
	return nil
}

// persistent pushes a storage: ("storage", class, key, location, elements), in the
// older container with a sixth member, a part (key, offset, elements) or None.
func (m *machine) persistent() error {
	id, err := m.pop()
	if err != nil {
		return err
	}
	t, _ := id.(*tuple)
	if t == nil || len(t.items) < 5 || len(t.items) > 6 || t.items[0] != value("storage") {
		return m.broken("a persistent ID is %s, want a tuple about a storage", kind(id))
	}
	class, ok1 := t.items[1].(storageClass)
	key, ok2 := t.items[2].(string)
	n, ok3 := t.items[4].(int64)
	if !ok1 || !ok2 || !ok3 {
		return m.broken("a storage of (%s), want a class, a key, a place and a number of elements", kinds(t.items[1:]))
	}
	if len(t.items) == 6 && t.items[5] != nil {
		return m.unsupported("storage %s is a part of another one, as PyTorch before 0.4 saved them", quote(key))
	}
	s := &storage{key: key, dtype: class.dtype, elements: n}
	if n < 0 || s.dtype != 0 && n > math.MaxInt64/int64(s.dtype.Bits()/8) {
		return m.broken("storage %s has %d elements", quote(key), n)
	}
	if other := m.storages[key]; other != nil {
		if other.dtype != s.dtype || other.elements != s.elements {
			return m.broken("storage %s has %d elements of %v, and before %d of %v", quote(key), n, s.dtype,
				other.elements, other.dtype)
		}
		s = other
	}
	m.storages[key] = s
	m.push(s)
	return nil
}
