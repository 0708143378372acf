package submit_test

import (
	"fmt"
	"strings"
	"time"

	"ggforge/publish/submit"
)

// A script that submits 16 parts and the job that finishes.
func ExampleSlurm_Script() {
	s := submit.Slurm{Time: 4 * time.Hour, Partition: "cpu", Job: submit.Job{
		Command: []string{"ggquant", "model-F16.gguf", "it's.gguf", "Q4_K_M"}, Parts: 16, Retries: 5, CPUs: 8,
		Memory: 4 << 30, Grace: 30 * time.Second,
	}}
	script, err := s.Script()
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(script) {
		if strings.Contains(line, "ggquant'") || strings.Contains(line, "sbatch") {
			fmt.Print(strings.ReplaceAll(line, " '--", "\n  '--"))
		}
	}
	// Output:
	// 'ggquant'
	//   '--part' 'auto/16'
	//   '--resume' 'model-F16.gguf' 'it'\''s.gguf' 'Q4_K_M' &
	// parts=$(parts_job | sbatch --parsable --array=1-16
	//   '--job-name=ggquant-parts'
	//   '--ntasks=1'
	//   '--requeue'
	//   '--open-mode=append'
	//   '--signal=B:TERM@30'
	//   '--cpus-per-task=8'
	//   '--mem=4G'
	//   '--time=240'
	//   '--partition=cpu')
	// 'ggquant'
	//   '--finish' 'model-F16.gguf' 'it'\''s.gguf' 'Q4_K_M' &
	// finish=$(finish_job | sbatch --parsable --dependency="afterany:$parts"
	//   '--job-name=ggquant-finish'
	//   '--ntasks=1'
	//   '--requeue'
	//   '--open-mode=append'
	//   '--signal=B:TERM@30'
	//   '--cpus-per-task=8'
	//   '--mem=4G'
	//   '--time=240'
	//   '--partition=cpu')
}

// The beginning of a manifest.
func ExampleKubernetes_Manifest() {
	k := submit.Kubernetes{Pods: submit.Pods{Image: "registry.example/ggforge:1.0.0"}, Storage: 1 << 40, Job: submit.Job{
		Name: "Gollama Q4_K_M", Command: []string{"ggquant", "model-F16.gguf", "out.gguf", "Q4_K_M"}, Parts: 16,
	}}
	manifest, err := k.Manifest()
	if err != nil {
		fmt.Println(err)
		return
	}
	claim, jobs, _ := strings.Cut(string(manifest), "---\n")
	fmt.Print(claim, strings.Count(jobs, "kind: Job"), " jobs\n")
	// Output:
	// apiVersion: v1
	// kind: PersistentVolumeClaim
	// metadata:
	//   name: "gollama-q4-k-m-work"
	//   labels:
	//     app.kubernetes.io/name: ggforge
	//     app.kubernetes.io/instance: "gollama-q4-k-m"
	//     app.kubernetes.io/component: work
	// spec:
	//   accessModes:
	//     - ReadWriteMany
	//   resources:
	//     requests:
	//       storage: "1Ti"
	// 2 jobs
}
