package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"ggforge/fault"
)

func TestKinds(t *testing.T) {
	kinds := []error{fault.Usage, fault.Broken, fault.Unsupported, fault.Refused}
	for _, kind := range kinds {
		err := fmt.Errorf("file: %w", fault.Errorf(kind, "tensor %d: %w", 3, fs.ErrPermission))
		if got, want := err.Error(), "file: tensor 3: permission denied"; got != want {
			t.Errorf("text %q, want %q", got, want)
		}
		for _, other := range kinds {
			if got, want := errors.Is(err, other), other == kind; got != want {
				t.Errorf("%v is %v: %v, want %v", kind, other, got, want)
			}
		}
		if !fault.Has(err) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v: the kind or the cause is lost", kind)
		}
	}
	if fault.Has(fs.ErrPermission) || fault.Has(nil) {
		t.Error("an error without a kind has one")
	}
}

func TestWith(t *testing.T) {
	err := fmt.Errorf("a: %w", fault.Errorf(fault.With(fault.Usage, fs.ErrExist), "b: exists already"))
	if got, want := err.Error(), "a: b: exists already"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	for _, c := range []struct {
		target error
		want   bool
	}{{fault.Usage, true}, {fs.ErrExist, true}, {fault.Broken, false}, {fs.ErrNotExist, false}} {
		if got := errors.Is(err, c.target); got != c.want {
			t.Errorf("is %v: %v, want %v", c.target, got, c.want)
		}
	}
	if !fault.Has(err) {
		t.Error("the kind is lost")
	}
}

func TestLines(t *testing.T) {
	if got := fault.List([]string{"a", "b"}); got != "a, b" {
		t.Errorf("got %q", got)
	}
	if got := fault.List(make([]string, 23)); strings.Count(got, ",") != 19 || !strings.HasSuffix(got, " and 3 more") {
		t.Errorf("got %q", got)
	}
	if got := fault.Lines([]string{"a", "b"}); got != "\n  a\n  b" {
		t.Errorf("got %q", got)
	}
	if got := fault.Lines(make([]string, 23)); strings.Count(got, "\n") != 21 ||
		!strings.HasSuffix(got, "\n  and 3 more") {
		t.Errorf("got %q", got)
	}
}

func TestOption(t *testing.T) {
	err := fmt.Errorf("a: %w", fault.Permits("Force", fault.Errorf(fault.Usage, "b: exists already")))
	if err.Error() != "a: b: exists already" || fault.Option(err) != "Force" || !errors.Is(err, fault.Usage) {
		t.Errorf("got %v, option %q", err, fault.Option(err))
	}
	if got := fault.Option(errors.New("x")); got != "" {
		t.Errorf("option %q of an error without one", got)
	}
}
