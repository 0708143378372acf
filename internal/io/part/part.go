// Package part parses the share of a job that a process has, when several processes do one job without
// communicating: the first of 16, or the one that a scheduler has put into the environment (schedulers.go).
package part

import (
	"fmt"
	"strconv"
	"strings"

	"ggforge/fault"
)

// Most is the largest number of parts of a job.
const Most = 100_000

// Part is the K-th of N equal shares, from 1 on. The zero value is no part: the whole job.
type Part struct{ K, N int }

// String returns the part as names of files have it: "3-of-16".
func (p Part) String() string { return fmt.Sprintf("%d-of-%d", p.K, p.N) }

// Range returns the share [a, b) of n ordered things; the shares of all parts, one after the other,
// cover all n. Shares differ by at most one thing, and some are
// empty if N is larger than n. The zero value has all.
func (p Part) Range(n int) (a, b int) {
	if p.N == 0 {
		return 0, n
	}
	return p.before(p.K-1, n), p.before(p.K, n)
}

// before returns the number of things, of n, in the first k parts.
func (p Part) before(k, n int) int {
	return n/p.N*k + int(int64(n%p.N)*int64(k)/int64(p.N))
}

// forms are the texts that Parse accepts, for messages.
const forms = "want K/N such as 3/16, auto, or auto/N"

// Parse returns the part that a text names:
//
//	K/N     the K-th of N
//	auto    K and N are those that a row of Schedulers has in the environment. In a job array of Slurm K is the
//	        place of SLURM_ARRAY_TASK_ID among the IDs from SLURM_ARRAY_TASK_MIN on, SLURM_ARRAY_TASK_STEP apart
//	auto/N  as auto where the environment has no N, and where it has one it must be this N. In a job array of
//	        Slurm K is SLURM_ARRAY_TASK_ID itself, so that an array of some of the numbers 1 to N runs those again
//
// All rows whose variables are set must agree. getenv is os.Getenv, or a function of a test. An error is of kind
// fault.Usage.
func Parse(text string, getenv func(string) string) (Part, error) {
	first, second, two := strings.Cut(strings.ToLower(text), "/")
	if first == "auto" && !two {
		return auto(text, 0, getenv)
	}
	n, ok := number(second)
	k, fine := number(first)
	if !ok || first != "auto" && !fine {
		return Part{}, fault.Errorf(fault.Usage, "%.40q is no part: %s", text, forms)
	}
	if n < 1 || n > Most {
		return Part{}, fault.Errorf(fault.Usage, "%.40q: %s parts, want 1 to %d", text, second, Most)
	}
	if first == "auto" {
		return auto(text, n, getenv)
	}
	if k < 1 || k > n {
		return Part{}, fault.Errorf(fault.Usage, "%.40q: part %s, want 1 to %d", text, first, n)
	}
	return Part{k, n}, nil
}

// number returns the value of decimal digits, also of numbers that are too large for parts.
func number(text string) (n int, ok bool) {
	if text == "" || len(text) > 40 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 1<<31 - 1, true
	}
	return int(v), true
}
