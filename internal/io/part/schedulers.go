package part

import (
	"fmt"
	"strconv"
	"strings"

	"ggforge/fault"
)

// Scheduler is a row of Schedulers: the environment variables in which a task finds its number.
type Scheduler struct {
	Name  string // what runs the tasks, with its article
	Index string // variable with the number of the task
	First int    // number of the first task
	Count string // variable with the number of tasks, "" for none
	// share returns K and N of a task, N 0 for unknown, where they are not Index-First+1 and Count. n is the number
	// of parts that the user has named, 0 for none.
	share func(n int, getenv func(string) string) (k, of int64, err error)
}

// Variables of job arrays of Slurm, and the project's own.
const (
	taskID = "SLURM_ARRAY_TASK_ID"
	least  = "SLURM_ARRAY_TASK_MIN"
	most   = "SLURM_ARRAY_TASK_MAX"
	count  = "SLURM_ARRAY_TASK_COUNT"
	step   = "SLURM_ARRAY_TASK_STEP"

	// Own and OwnCount are the variables for schedulers that are not in the table, and for scripts.
	Own      = "GGFORGE_PART"
	OwnCount = "GGFORGE_PARTS"
)

// Schedulers has a row for each scheduler whose tasks know their number. The variables are documented by
//
//	Slurm           sbatch(1), OUTPUT ENVIRONMENT VARIABLES
//	Kubernetes      Indexed Job for Parallel Processing with Static Work Assignment
//	AWS Batch       AWS Batch job environment variables
//	GNU parallel    parallel(1), ENVIRONMENT VARIABLES. PARALLEL_SEQ numbers jobs from 1; PARALLEL_JOBSLOT numbers
//	                places that one job after the other takes
//	SkyPilot        Distributed Multi-Node Jobs
var Schedulers = []Scheduler{
	{Name: "a job array of Slurm", Index: taskID, First: 1, Count: count, share: slurm},
	{Name: "an Indexed Job of Kubernetes", Index: "JOB_COMPLETION_INDEX"},
	{Name: "an array job of AWS Batch", Index: "AWS_BATCH_JOB_ARRAY_INDEX", Count: "AWS_BATCH_JOB_ARRAY_SIZE"},
	{Name: "GNU parallel", Index: "PARALLEL_SEQ", First: 1},
	{Name: "a task of SkyPilot on several nodes", Index: "SKYPILOT_NODE_RANK", Count: "SKYPILOT_NUM_NODES"},
	{Name: "any other scheduler or script", Index: Own, First: 1, Count: OwnCount},
}

// AutoHelp is the text about auto for the help of --part.
const AutoHelp = "auto or auto/N: K from Slurm, Kubernetes, AWS Batch, GNU parallel, SkyPilot or " + Own

// auto returns the part of a task by the rows of Schedulers whose variables are set. n is 0 for the number of parts
// in the environment. text is the user's, for errors.
func auto(text string, n int, getenv func(string) string) (Part, error) {
	fail := func(format string, args ...any) (Part, error) {
		return Part{}, fault.Errorf(fault.Usage, "part "+strings.ToLower(text)+": "+format, args...)
	}
	var p Part
	var from, counted *Scheduler // the rows of p.K and p.N
	p.N = n
	for i := range Schedulers {
		s := &Schedulers[i]
		if getenv(s.Index) == "" && (s.Index != Own || getenv(OwnCount) == "") { // OwnCount alone is N for others
			continue
		}
		k, of, err := s.task(n, getenv)
		if err != nil {
			return fail("%w", err)
		}
		switch {
		case of > 0 && n > 0 && of != int64(n):
			return fail("%s is %d, want %d", s.Count, of, n)
		case of > 0 && counted != nil && of != int64(p.N):
			return fail("%s is %d, and %s is %s: want the same number, or K/N such as 3/16", counted.Count, p.N, s.Count,
				getenv(s.Count))
		case of > 0:
			p.N, counted = int(of), s
		}
		if getenv(s.Index) == "" {
			continue
		}
		if from != nil && k != int64(p.K) {
			return fail("%s is %s, which is part %d, and %s is %s, which is part %d: unset one of them, or give K/N such "+
				"as 3/16", from.Index, getenv(from.Index), p.K, s.Index, getenv(s.Index), k)
		}
		if last := int64(p.N); k < 1 || last > 0 && k > last {
			return fail("%s is %s, want %d to %d", s.Index, getenv(s.Index), s.First, int64(s.First)+max(last, 1)-1)
		}
		p.K, from = int(k), s
	}
	switch {
	case from == nil:
		return fail("no number of a task is in the environment: %s; want one, or K/N such as 3/16", variables())
	case p.N == 0:
		return fail("%s is set, but not the number of parts: want auto/N, or N in %s", from.Index, OwnCount)
	case p.K > p.N:
		return fail("%s is %s, want %d to %d", from.Index, getenv(from.Index), from.First, from.First+p.N-1)
	}
	return p, nil
}

// variables lists the variables of all rows.
func variables() string {
	var list []string
	for _, s := range Schedulers {
		list = append(list, s.Index+" ("+s.Name+")")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1] + " are not set"
}

// task returns the part K of a task whose variables are set, and the number of tasks, 0 for unknown.
func (s *Scheduler) task(n int, getenv func(string) string) (k, of int64, err error) {
	if s.share != nil {
		return s.share(n, getenv)
	}
	if getenv(s.Index) != "" {
		if k, err = variable(getenv, s.Index, ""); err != nil {
			return 0, 0, err
		}
		k += 1 - int64(s.First)
	}
	if s.Count != "" && getenv(s.Count) != "" {
		if of, err = variable(getenv, s.Count, ""); err != nil {
			return 0, 0, err
		}
		if of < 1 || of > Most {
			return 0, 0, fault.Errorf(fault.Usage, "%s is %d, want 1 to %d", s.Count, of, Most)
		}
	}
	return k, of, nil
}

// slurm returns the part of a task of a job array.
func slurm(n int, getenv func(string) string) (k, of int64, err error) {
	id, err := variable(getenv, taskID, "")
	if err != nil || n > 0 {
		return id, 0, err
	}
	from, err := variable(getenv, least, "")
	if err != nil {
		return 0, 0, err
	}
	tasks, err := variable(getenv, count, "")
	if err != nil {
		return 0, 0, err
	}
	apart, err := variable(getenv, step, "1")
	if err != nil {
		return 0, 0, err
	}
	last := from + (tasks-1)*apart
	to, err := variable(getenv, most, strconv.FormatInt(last, 10))
	if err != nil {
		return 0, 0, err
	}
	array := fmt.Sprintf("%s is %d, %s %d, %s %d, %s %d", least, from, most, to, count, tasks, step, apart)
	switch {
	case tasks < 1 || tasks > Most:
		return 0, 0, fault.Errorf(fault.Usage, "%s is %d, want 1 to %d", count, tasks, Most)
	case apart < 1 || to != last:
		return 0, 0, fault.Errorf(fault.Usage,
			"%s: want an array without gaps, such as 1-16; auto/N is for one that runs some parts again", array)
	case id < from || id > last || (id-from)%apart != 0:
		return 0, 0, fault.Errorf(fault.Usage, "%s is %d, which is not one of the array: %s", taskID, id, array)
	}
	return (id-from)/apart + 1, tasks, nil
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
			return 0, fault.Errorf(fault.Usage, "%s is not set, want a number, as in a job array of Slurm", name)
		}
		return 0, fault.Errorf(fault.Usage, "%s is %.40q, want a number", name, text)
	}
	return int64(n), nil
}
