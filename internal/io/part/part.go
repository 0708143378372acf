// Package part parses the share of a job that a process has, when several processes do one job without
// communicating: the first of 16, or whatever a scheduler says in the environment.
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
//	auto    as a job array of Slurm says: the place of SLURM_ARRAY_TASK_ID among the IDs from
//	        SLURM_ARRAY_TASK_MIN on, SLURM_ARRAY_TASK_STEP apart, of which there are
//	        SLURM_ARRAY_TASK_COUNT
//	auto/N  K is SLURM_ARRAY_TASK_ID itself, so that an array of some of the numbers 1 to N
//	        runs those again; or JOB_COMPLETION_INDEX plus 1, of an Indexed Job of Kubernetes,
//	        whose pods do not know how many there are
//
// getenv is os.Getenv, or a function of a test. An error is of kind fault.Usage.
func Parse(text string, getenv func(string) string) (Part, error) {
	first, second, two := strings.Cut(strings.ToLower(text), "/")
	if first == "auto" && !two {
		return slurm(getenv)
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
		return indexed(n, getenv)
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

// Variables of schedulers.
const (
	taskID = "SLURM_ARRAY_TASK_ID"
	least  = "SLURM_ARRAY_TASK_MIN"
	most   = "SLURM_ARRAY_TASK_MAX"
	count  = "SLURM_ARRAY_TASK_COUNT"
	step   = "SLURM_ARRAY_TASK_STEP"
	index  = "JOB_COMPLETION_INDEX"
)

// slurm returns the part of a task of a job array.
func slurm(getenv func(string) string) (Part, error) {
	if getenv(taskID) == "" {
		if getenv(index) != "" {
			return Part{}, fault.Errorf(fault.Usage,
				"part auto: %s is set, but not the number of parts: want auto/N", index)
		}
		return Part{}, fault.Errorf(fault.Usage,
			"part auto: %s is not set: want it as in a job array of Slurm, auto/N in an Indexed Job of Kubernetes, "+
				"or K/N such as 3/16", taskID)
	}
	id, err := variable(getenv, taskID, "")
	if err != nil {
		return Part{}, err
	}
	from, err := variable(getenv, least, "")
	if err != nil {
		return Part{}, err
	}
	n, err := variable(getenv, count, "")
	if err != nil {
		return Part{}, err
	}
	apart, err := variable(getenv, step, "1")
	if err != nil {
		return Part{}, err
	}
	last := from + (n-1)*apart
	to, err := variable(getenv, most, strconv.FormatInt(last, 10))
	if err != nil {
		return Part{}, err
	}
	array := fmt.Sprintf("%s is %d, %s %d, %s %d, %s %d", least, from, most, to, count, n, step, apart)
	switch {
	case n < 1 || n > Most:
		return Part{}, fault.Errorf(fault.Usage, "part auto: %s is %d, want 1 to %d", count, n, Most)
	case apart < 1 || to != last:
		return Part{}, fault.Errorf(fault.Usage,
			"part auto: %s: want an array without gaps, such as 1-16; auto/N is for one that runs some parts again",
			array)
	case id < from || id > last || (id-from)%apart != 0:
		return Part{}, fault.Errorf(fault.Usage, "part auto: %s is %d, which is not one of the array: %s",
			taskID, id, array)
	}
	return Part{int((id-from)/apart) + 1, int(n)}, nil
}

// indexed returns the part of n of a task whose number is given.
func indexed(n int, getenv func(string) string) (Part, error) {
	name, from := taskID, int64(1)
	switch {
	case getenv(taskID) != "" && getenv(index) != "":
		return Part{}, fault.Errorf(fault.Usage, "part auto/%d: both %s and %s are set, want one of them", n,
			taskID, index)
	case getenv(index) != "":
		name, from = index, 0
	case getenv(taskID) == "":
		return Part{}, fault.Errorf(fault.Usage,
			"part auto/%d: want %s, as in a job array of Slurm, or %s, as in an Indexed Job of Kubernetes; neither is set", n, taskID, index)
	}
	id, err := variable(getenv, name, "")
	if err != nil {
		return Part{}, err
	}
	if id < from || id >= from+int64(n) {
		return Part{}, fault.Errorf(fault.Usage, "part auto/%d: %s is %d, want %d to %d", n, name, id, from,
			from+int64(n)-1)
	}
	return Part{int(id-from) + 1, n}, nil
}

// variable returns the number in a variable; otherwise, unless it is empty, is the value of a variable that is not set.
func variable(getenv func(string) string, name, otherwise string) (int64, error) {
	text := getenv(name)
	if text == "" {
		text = otherwise
	}
	n, ok := number(text)
	if !ok {
		if text == "" {
			return 0, fault.Errorf(fault.Usage, "part auto: %s is not set, want a number, as in a job array of Slurm",
				name)
		}
		return 0, fault.Errorf(fault.Usage, "part auto: %s is %.40q, want a number", name, text)
	}
	return int64(n), nil
}
