package hftest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
)

// tensor is one row of a table for one value of its counters.
type tensor struct {
	name  string
	shape []int64
	dtype string    // "" is the variant's
	fill  string    // "" is by shape and name
	args  []float64 // of the fill
}

// tensors expands the table for a config.
func (s *Spec) tensors(cfg map[string]any) ([]tensor, error) { return s.table(s.Tensors, cfg) }

// table reads a table of tensors.
func (s *Spec) table(text string, cfg map[string]any) ([]tensor, error) {
	e := &env{config: cfg, lets: map[string]any{}}
	if s.published != nil {
		view, err := s.published.view(cfg)
		if err != nil {
			return nil, err
		}
		e.view = view
	}
	var all []tensor
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" || s.published != nil && s.published.lacks(line) {
			continue
		}
		list, err := e.row(line)
		if err != nil {
			return nil, fmt.Errorf("hftest: %s: %q: %w", s.Name, line, err)
		}
		for _, t := range list {
			if seen[t.name] {
				return nil, fmt.Errorf("hftest: %s: two tensors %s", s.Name, t.name)
			}
			seen[t.name] = true
		}
		all = append(all, list...)
	}
	if s.published != nil {
		all = s.published.stored(all)
	}
	return all, nil
}

// env has the values of names in expressions.
type env struct {
	config map[string]any
	lets   map[string]any // values of "x = …", and counters while they run
	view   *config.View   // for Published: the converter's defaults of missing keys
}

// row evaluates one line.
func (e *env) row(line string) ([]tensor, error) {
	parts := columns(line)
	if len(parts) == 1 {
		name, text, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("want NAME | DIMENSIONS or NAME = EXPRESSION")
		}
		v, err := e.eval(text)
		e.lets[strings.TrimSpace(name)] = v
		return nil, err
	}
	name, dims := parts[0], parts[1]
	var t tensor
	conds, args := []string{}, []string{}
	for _, clause := range parts[2:] {
		word, arg, _ := strings.Cut(clause, " ")
		switch word {
		case "if":
			conds = append(conds, arg)
		case "as":
			t.dtype = strings.TrimSpace(arg)
		case "fill":
			how := strings.Fields(arg)
			if len(how) == 0 {
				return nil, fmt.Errorf("fill without a name")
			}
			t.fill, args = how[0], how[1:]
		default:
			return nil, fmt.Errorf("clause %q: want if, as or fill", clause)
		}
	}
	var list []tensor
	err := e.expand(name, func(name string) error {
		for _, cond := range conds {
			v, err := e.eval(cond)
			if err != nil || !truth(v) {
				return err
			}
		}
		t := t
		t.name = name
		for _, arg := range args {
			v, err := e.eval(arg)
			f, ok := v.(float64)
			if err != nil || !ok {
				return fmt.Errorf("%s is %v, want a number (%v)", arg, v, err)
			}
			t.args = append(t.args, f)
		}
		for dim := range strings.SplitSeq(dims, ",") {
			if dim = strings.TrimSpace(dim); dim == "" {
				continue // no dimensions at all
			}
			v, err := e.eval(dim)
			if err != nil {
				return err
			}
			n, ok := v.(float64)
			if ok && n == 0 && e.view != nil {
				return nil // a size of zero: the tensor does not exist
			}
			if !ok || n != math.Trunc(n) || n < 1 {
				return fmt.Errorf("%s is %v, want a whole number from 1", dim, v)
			}
			t.shape = append(t.shape, int64(n))
		}
		list = append(list, t)
		return nil
	})
	return list, err
}

// columns cuts a line at each | that is not part of ||.
func columns(line string) []string {
	const or = "\x00"
	list := strings.Split(strings.ReplaceAll(line, "||", or), "|")
	for i, s := range list {
		list[i] = strings.TrimSpace(strings.ReplaceAll(s, or, "||"))
	}
	return list
}

// expand calls f for every expansion of the braces in a name, the leftmost varying slowest.
func (e *env) expand(name string, f func(string) error) error {
	before, rest, ok := strings.Cut(name, "{")
	if !ok {
		return f(name)
	}
	inner, after, ok := strings.Cut(rest, "}")
	if !ok {
		return fmt.Errorf("no } for {")
	}
	if strings.Contains(inner, ",") {
		for alternative := range strings.SplitSeq(inner, ",") {
			if err := e.expand(before+alternative+after, f); err != nil {
				return err
			}
		}
		return nil
	}
	n, ok := e.lets[inner].(float64)
	if !ok {
		return fmt.Errorf("{%s}: write %s = … first", inner, inner)
	}
	defer func() { e.lets[inner] = n }()
	for i := range int(n) {
		e.lets[inner] = float64(i)
		if err := e.expand(before+strconv.Itoa(i)+after, f); err != nil {
			return err
		}
		e.lets[inner] = n
	}
	return nil
}

func truth(v any) bool { return v != 0.0 && v != "" }

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// eval returns the value of an expression: a float64, a string, or a list or object of the config.
func (e *env) eval(text string) (any, error) {
	x, err := parser.ParseExpr(strings.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	v, err := e.value(x)
	if err == nil && v == nil {
		err = fmt.Errorf("%s is not in the config", strings.TrimSpace(text))
	}
	return v, err
}

// value is eval for a syntax tree; nil is an absent key.
func (e *env) value(x ast.Expr) (any, error) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return e.value(x.X)
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			return strconv.Unquote(x.Value)
		}
		return strconv.ParseFloat(x.Value, 64)
	case *ast.Ident:
		if v, ok := e.lets[x.Name]; ok {
			return v, nil
		}
		if x.Name == "true" || x.Name == "false" {
			return number(x.Name == "true"), nil
		}
		for _, path := range textPaths {
			if v := member(e.config, path)[x.Name]; v != nil {
				return plain(v), nil
			}
		}
		if v := e.config[x.Name]; v != nil || e.view == nil {
			return plain(v), nil
		}
		return e.defaultOf(x.Name)
	case *ast.SelectorExpr:
		v, err := e.value(x.X)
		m, _ := v.(map[string]any)
		if part, ok := x.X.(*ast.Ident); ok && m[x.Sel.Name] == nil && e.view != nil {
			return plain(e.view.Sub(part.Name).Value(x.Sel.Name)), err
		}
		return plain(m[x.Sel.Name]), err
	case *ast.IndexExpr:
		v, err := e.value(x.X)
		if err != nil {
			return nil, err
		}
		i, err := e.number(x.Index)
		if text, ok := v.(string); ok && err == nil && i >= 0 && int(i) < len(text) {
			return text[int(i) : int(i)+1], nil
		}
		list, _ := v.([]any)
		if err != nil || i < 0 || int(i) >= len(list) {
			return nil, err
		}
		return plain(list[int(i)]), nil
	case *ast.UnaryExpr:
		n, err := e.value(x.X)
		if err == nil && n == nil {
			err = fmt.Errorf("the operand of %v is not in the config", x.Op)
		}
		switch x.Op {
		case token.NOT:
			return number(!truth(n)), err
		case token.SUB:
			f, ok := n.(float64)
			if err == nil && !ok {
				err = fmt.Errorf("- of %v", n)
			}
			return -f, err
		}
	case *ast.CallExpr:
		return e.call(x)
	case *ast.BinaryExpr:
		return e.binary(x)
	}
	return nil, fmt.Errorf("%T is not understood", x)
}

func (e *env) number(x ast.Expr) (float64, error) {
	v, err := e.value(x)
	f, ok := v.(float64)
	if err == nil && !ok {
		err = fmt.Errorf("%v is not a number", v)
	}
	return f, err
}

// call evaluates opt(key), floor(x), len(list) and has(list, number).
func (e *env) call(x *ast.CallExpr) (any, error) {
	name, ok := x.Fun.(*ast.Ident)
	if !ok || len(x.Args) == 0 || len(x.Args) > 1 != (name.Name == "has") {
		return nil, fmt.Errorf("want a function of one argument, or has of two")
	}
	v, err := e.value(x.Args[0])
	if err != nil {
		return nil, err
	}
	if name.Name == "has" {
		n, err := e.number(x.Args[1])
		list, ok := v.([]any)
		if err == nil && !ok {
			err = fmt.Errorf("has: want a list, found %v", v)
		}
		return number(slices.ContainsFunc(list, func(v any) bool { return plain(v) == n })), err
	}
	switch name.Name {
	case "opt":
		if v == nil {
			v = 0.0
		}
		return v, nil
	case "floor":
		if f, ok := v.(float64); ok {
			return math.Floor(f), nil
		}
	case "len":
		if list, ok := v.([]any); ok {
			return float64(len(list)), nil
		}
	}
	return nil, fmt.Errorf("%s of %v is not understood", name.Name, v)
}

func (e *env) binary(x *ast.BinaryExpr) (any, error) {
	a, err := e.value(x.X)
	if err == nil && a == nil {
		err = fmt.Errorf("left side of %v is not in the config", x.Op)
	}
	if err != nil {
		return nil, err
	}
	switch x.Op { // the right side may depend on the left one's condition
	case token.LAND:
		if !truth(a) {
			return 0.0, nil
		}
		return e.value(x.Y)
	case token.LOR:
		if truth(a) {
			return a, nil
		}
		return e.value(x.Y)
	}
	b, err := e.value(x.Y)
	if err == nil && b == nil {
		err = fmt.Errorf("right side of %v is not in the config", x.Op)
	}
	if err != nil {
		return nil, err
	}
	switch x.Op {
	case token.EQL:
		return number(a == b), nil
	case token.NEQ:
		return number(a != b), nil
	}
	f, ok := a.(float64)
	g, ok2 := b.(float64)
	if !ok || !ok2 {
		return nil, fmt.Errorf("%v %v %v: want numbers", a, x.Op, b)
	}
	switch x.Op {
	case token.ADD:
		return f + g, nil
	case token.SUB:
		return f - g, nil
	case token.MUL:
		return float64(f * g), nil
	case token.QUO:
		return f / g, nil
	case token.REM:
		return math.Mod(f, g), nil
	case token.LSS:
		return number(f < g), nil
	case token.LEQ:
		return number(f <= g), nil
	case token.GTR:
		return number(f > g), nil
	case token.GEQ:
		return number(f >= g), nil
	}
	return nil, fmt.Errorf("operator %v is not understood", x.Op)
}

// defaultOf returns the value of a key that a published configuration lacks: the default of its model type, or a derived
// value.
func (e *env) defaultOf(key string) (any, error) {
	v := plain(e.view.Value(key))
	if v != nil {
		return v, nil
	}
	switch key {
	case "head_dim":
		return e.eval("hidden_size / num_attention_heads")
	case "num_key_value_heads":
		return e.eval("num_attention_heads")
	}
	return nil, nil
}

// plain turns a JSON value into a value of eval.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return string(v)
		}
		return f
	case bool:
		return number(v)
	case int64:
		return float64(v)
	}
	return v
}
