package submit

import (
	"fmt"
	"strings"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/part"
)

// HFJobs is a job for Hugging Face Jobs, whose machines share no disk: one job for each part, and one that finishes.
// Inputs have to be on servers or below a mounted volume, outputs on servers.
type HFJobs struct {
	Job
	// Image is an image with the commands; the Dockerfile of this project makes one. It must be set.
	Image string
	// Flavor is the kind of machine, such as cpu-upgrade; "" for the default.
	Flavor string
	// Namespace is the user or organization that runs and pays for the jobs, "" for the user.
	Namespace string
	// Secrets are names of environment variables, whose values are those where the script runs.
	Secrets []string
	// Volumes are repositories to mount, such as hf://org/model:/model.
	Volumes []string
	// Time is the time limit of a job, 0 for the default, which is half an hour.
	Time time.Duration
}

// Script returns a script for sh that starts a job for each part with the CLI of the hub (hf), waits for all of them,
// starts those that failed again, at most Retries times, and then runs the job that finishes. Values of secrets are
// not in it. The CLI does not tell with which exit code a command ended.
func (h *HFJobs) Script() (string, error) {
	if err := h.Check(); err != nil {
		return "", err
	}
	if h.Image == "" {
		return "", fault.Errorf(fault.Usage, "no image: want the name of an image with the commands")
	}
	if strings.HasPrefix(h.Image, "-") || h.Time < 0 {
		return "", fault.Errorf(fault.Usage, "image %q, time limit %v: want a name, and a time above 0", h.Image, h.Time)
	}
	words := append(append([]string{h.Image, h.Flavor, h.Namespace}, h.Secrets...), h.Volumes...)
	if err := noNUL(words...); err != nil {
		return "", err
	}
	if err := isText("the hub", append(words, h.Command...)...); err != nil {
		return "", err
	}
	for _, s := range h.Secrets {
		if !isVariable(s) {
			return "", fault.Errorf(fault.Usage,
				"secret %.20q: want the name of an environment variable, whose value the script takes", nameOnly(s))
		}
	}
	var mounted []string
	for _, v := range h.Volumes {
		from, to, ok := strings.Cut(v, ":/") // after the scheme
		if ok && strings.HasSuffix(from, "hf") {
			_, to, ok = strings.Cut(to, ":/")
		}
		if !ok {
			return "", fault.Errorf(fault.Usage, "volume %q: want SOURCE:/PATH, such as hf://org/model:/model", v)
		}
		to, _, _ = strings.Cut(to, ":") // :ro
		mounted = append(mounted, "/"+to)
	}
	if err := h.onServers("or, for inputs, mount a repository of the hub with a volume", mounted...); err != nil {
		return "", err
	}
	options := h.options()
	var all strings.Builder
	for k := range h.Parts {
		fmt.Fprintf(&all, " %d", k+1)
	}
	return fmt.Sprintf(`#!/bin/sh
# Starts a job for each part, waits for them, and starts the job that finishes: sh FILE
set -eu
%s# part starts the job of a part and prints its ID.
part() {
	hf jobs run --detach --env %s="$1" --env %s=%d %s -- %s </dev/null |
		sed -n 's/.*\([0-9a-f]\{24\}\).*/\1/p' | head -n 1
}
todo='%s'
again=0
while :; do
	jobs=
	for k in $todo; do
		id=$(part "$k")
		[ -n "$id" ] || { echo "part $k: no job was started" >&2; exit 1; }
		jobs="$jobs $k:$id"
	done
	todo=
	for job in $jobs; do
		hf jobs wait%s "${job#*:}" </dev/null >&2 || todo="$todo ${job%%%%:*}"
	done
	[ -n "$todo" ] || break
	again=$((again + 1))
	[ $again -le %d ] || { echo "parts that failed:$todo" >&2; exit 7; }
done
hf jobs run %s -- %s </dev/null
`, breaks(append(words, h.Command...)), part.Own, part.OwnCount, h.Parts, options,
		quote(append([]string{h.Image}, h.Part()...)), strings.TrimSpace(all.String()), h.namespace(), h.Retries, options,
		quote(append([]string{h.Image}, h.Finish()...))), nil
}

// namespace returns the option for it with a space before, or nothing.
func (h *HFJobs) namespace() string {
	if h.Namespace == "" {
		return ""
	}
	return " " + quote([]string{"--namespace=" + h.Namespace})
}

// options returns the options of hf jobs run that both kinds of jobs have.
func (h *HFJobs) options() string {
	list := []string{"--label=ggforge=" + h.CleanName()}
	for _, o := range [][2]string{{"--flavor=", h.Flavor}, {"--namespace=", h.Namespace}} {
		if o[1] != "" {
			list = append(list, o[0]+o[1])
		}
	}
	if h.Time > 0 {
		list = append(list, fmt.Sprintf("--timeout=%ds", units(h.Time, time.Second)))
	}
	for _, s := range h.Secrets {
		list = append(list, "--secrets="+s)
	}
	for _, v := range h.Volumes {
		list = append(list, "--volume="+v)
	}
	return quote(list)
}
