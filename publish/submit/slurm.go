package submit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Slurm is a job for Slurm: an array with one task for each part, and a job that depends on it.
type Slurm struct {
	Job
	// Time is the time limit of a part, after which it is stopped and, within Retries, queued again; 0 is the
	// partition's limit.
	Time time.Duration
	// Partition and Account are the options of sbatch, "" for the user's defaults.
	Partition, Account string
	// Options are more options of sbatch for both jobs, such as --constraint=avx512.
	Options []string
}

// Script returns a script for sh that submits both jobs and prints their numbers: the array's, then that of the job
// that finishes. All strings of the job are quoted.
//
// A task passes on the SIGTERM that Slurm sends Grace before its time is over, or when the job is preempted; the
// command then saves its progress. It queues itself again when it was stopped or killed, at most Retries times. The
// job that finishes starts when all tasks have ended, successfully or not, and names missing parts: with
// --dependency=afterok it would never start after somebody cancels a task, even if it is queued again.
func (s *Slurm) Script() (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	if err := noNUL(slices.Concat(s.Options, []string{s.Partition, s.Account})...); err != nil {
		return "", err
	}
	array := fmt.Sprintf("1-%d", s.Parts)
	if s.AtOnce > 0 {
		array += fmt.Sprintf("%%%d", s.AtOnce)
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Submits the parts and the job that finishes: sh FILE\nset -eu\nparts=\n")
	s.sbatch(&b, "parts", s.Part(), "--array="+array)
	s.sbatch(&b, "finish", s.Finish(), `--dependency="afterany:$parts"`)
	b.WriteString("echo \"$parts $finish\"\n")
	return b.String(), nil
}

// sbatch adds the lines that submit one of the jobs and set the variable of its kind to the job's number.
// The first option is in the shell's syntax.
func (s *Slurm) sbatch(b *strings.Builder, kind string, command []string, first string) {
	options := []string{"--job-name=" + s.CleanName() + "-" + kind, "--ntasks=1", "--requeue", "--open-mode=append"}
	if s.Grace > 0 {
		options = append(options, fmt.Sprintf("--signal=B:TERM@%d", units(s.Grace, time.Second)))
	}
	if s.CPUs > 0 {
		options = append(options, fmt.Sprintf("--cpus-per-task=%d", s.CPUs))
	}
	if s.Memory > 0 {
		options = append(options, "--mem="+memory(s.Memory))
	}
	if s.Time > 0 {
		options = append(options, fmt.Sprintf("--time=%d", units(s.Time, time.Minute)))
	}
	if s.Partition != "" {
		options = append(options, "--partition="+s.Partition)
	}
	if s.Account != "" {
		options = append(options, "--account="+s.Account)
	}
	words := append(options, s.Options...)
	fmt.Fprintf(b, "%s_job() {\nprintf '#!/bin/sh\\nparts=%%s\\n' \"$parts\"\ncat <<'END'\n%sEND\n}\n%s%s=$(%s_job | "+
		"sbatch --parsable %s %s)\n%s=${%s%%%%;*}\n",
		kind, batch(command, s.Retries), breaks(words), kind, kind, first, quote(words), kind, kind)
}

// memory returns bytes in Slurm's units, which are powers of 1024: in MiB, rounded up, where no unit divides them.
func memory(bytes int64) string {
	units := [4]string{"T", "G", "M", "K"}
	return cmp.Or(inUnit(bytes, units, units), fmt.Sprintf("%dM", (bytes-1)/(1<<20)+1))
}

// batch returns the script that runs a command in a job, without its line that sets the variable parts: to the
// array's number, or to nothing for a task of the array. The command runs in the background, so that the shell can
// pass on a signal while it waits. The job is queued again when the command was stopped or killed, which is an exit
// code of 128 or more, when it had a read or write error, and when missing parts are still in the queue, as after
// somebody has queued them and the job that finishes again. A cancelled job is not: its state is no longer RUNNING.
//
// The last task of an array has the number of the whole array as its own, so squeue and scontrol need both numbers to
// name the task alone. The job that finishes may have inherited such variables from the job in which it was submitted.
func batch(command []string, retries int) string {
	return fmt.Sprintf(`export GOMAXPROCS="${SLURM_CPUS_PER_TASK:-}"
%s%s &
pid=$!
trap 'kill -TERM "$pid"' TERM
wait "$pid"
code=$?
while kill -0 "$pid" 2>/dev/null; do
	wait "$pid"
	code=$?
done
again=
case $code in
1 | 1??) [ "${SLURM_RESTART_COUNT:-0}" -ge %d ] || again=yes ;;
7) [ -z "$(squeue -h -j "$parts")" ] || again=yes ;;
esac
job=$SLURM_JOB_ID
if [ -z "$parts" ]; then
	job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
fi
if [ -n "$again" ] && [ "$(squeue -h -o %%T -j "$job")" = RUNNING ]; then
	scontrol requeue "$job"
fi
exit "$code"
`, breaks(command), quote(command), retries)
}

// quote returns words quoted for the shell. Line ends come from variables: sbatch refuses a script with DOS line
// ends, and where a line of a here-document begins with the bytes of the delimiter, dash loses a byte of 0x80 or more
// that follows.
func quote(words []string) string {
	in := strings.NewReplacer("'", `'\''`, "\r", `'"$cr"'`, "\n", `'"$lf"'`)
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + in.Replace(w) + "'"
	}
	return strings.Join(quoted, " ")
}

// breaks returns the lines that set the variables of quote that words need.
func breaks(words []string) string {
	var lines string
	all := strings.Join(words, "")
	if strings.Contains(all, "\r") {
		lines += "cr=$(printf '\\r')\n"
	}
	if strings.Contains(all, "\n") {
		lines += "lf='\n'\n"
	}
	return lines
}
