//go:build unix

package interop

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"ggforge/test/buckettest"
)

// TestKubernetesRun creates the Jobs that ggtool submit prints on a real API server with the real controller of Jobs, which
// test/interop/kubernetes/with-cluster has started, and stands in for the nodes: it runs the command of each pod as a
// process, kills some, evicts some, and reports how they ended. The output has to be that of one process.
func TestKubernetesRun(t *testing.T) {
	if os.Getenv("KUBERNETES_URL") == "" || bin == "" {
		t.Skip("needs a Kubernetes of its own: run make kubernetes-run")
	}
	gollama, err := filepath.Abs("../testdata/gollama")
	must(t, err)
	store := buckettest.Serve(t, gollama, "models/gollama/")
	store.Aged = true // no process waits for the lease of one that was killed
	alone := filepath.Join(t.TempDir(), "alone.gguf")
	if _, errs, code := outcome(t, exec.Command(filepath.Join(bin, "ggquant"), gollama, alone, "Q4_K_M")); code != 0 {
		t.Fatal(errs)
	}
	job := printed(t, "k8s", "--parts", "5", "--at-once", "3", "--image", "i", "--cpus", "1", "--mem", "1G", "--", "ggquant",
		"s3://models/gollama", "s3://out/x.gguf", "Q4_K_M")
	n := &node{t: t, random: rand.New(rand.NewPCG(3, 9)), started: map[string]bool{}}
	for _, document := range yamlDocuments[map[string]any](t, job) {
		n.call("POST", "/apis/batch/v1/namespaces/default/jobs", "application/json", document, nil)
	}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the jobs have not ended after 3 minutes: %v", n.jobs())
		}
		n.work()
		ended := n.jobs()
		if ended["ggquant-parts"] == "Failed" || ended["ggquant-finish"] == "Failed" {
			t.Fatalf("%v", ended)
		}
		if ended["ggquant-parts"] == "Complete" && ended["ggquant-finish"] == "Complete" {
			break
		}
	}
	n.running.Wait()
	want, err := os.ReadFile(alone)
	must(t, err)
	if !bytes.Equal(store.Get("out/x.gguf"), want) {
		t.Errorf("the object differs from the file of one process; there are %v", store.Names())
	}
	if n.killed < 3 || n.evicted < 1 {
		t.Errorf("%d pods were killed and %d evicted, want 3 and 1", n.killed, n.evicted)
	}
	t.Logf("%d pods for 5 parts and the job that finishes, %d killed, %d evicted, %d ended with 7", len(n.started), n.killed,
		n.evicted, n.incomplete)
}

// node stands in for a node and the scheduler.
type node struct {
	t       *testing.T
	running sync.WaitGroup

	mu                          sync.Mutex
	random                      *rand.Rand
	started                     map[string]bool // pods, by UID
	killed, evicted, incomplete int
}

// call sends a request to the API server.
func (n *node) call(method, path, kind string, body, answer any) {
	data, err := json.Marshal(body)
	must(n.t, err)
	r, err := http.NewRequest(method, os.Getenv("KUBERNETES_URL")+path, bytes.NewReader(data))
	must(n.t, err)
	r.Header.Set("Authorization", "Bearer "+os.Getenv("KUBERNETES_TOKEN"))
	r.Header.Set("Content-Type", kind)
	client := http.Client{Transport: insecure}
	got, err := client.Do(r)
	must(n.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must(n.t, err)
	if got.StatusCode >= 300 && got.StatusCode != http.StatusNotFound {
		n.t.Errorf("%s %s: %s: %s", method, path, got.Status, text)
	}
	if answer != nil {
		must(n.t, json.Unmarshal(text, answer))
	}
}

// insecure trusts the certificate that the server has made for itself.
var insecure = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}

// jobs returns the condition in which each Job has ended.
func (n *node) jobs() map[string]string {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	n.call("GET", "/apis/batch/v1/namespaces/default/jobs", "application/json", nil, &list)
	ended := map[string]string{}
	for _, j := range list.Items {
		for _, c := range j.Status.Conditions {
			if c.Status == "True" && (c.Type == "Complete" || c.Type == "Failed") {
				ended[j.Metadata.Name] = c.Type
			}
		}
	}
	return ended
}

// pod is a pod with what a node needs of it.
type pod struct {
	Metadata struct {
		Name, UID         string
		Annotations       map[string]string
		DeletionTimestamp string
	}
	Spec   struct{ Containers []podCommand }
	Status struct{ Phase string }
}

// work starts pods that are new, and removes those that are to be deleted.
func (n *node) work() {
	var list struct{ Items []pod }
	n.call("GET", "/api/v1/namespaces/default/pods", "application/json", nil, &list)
	for _, p := range list.Items {
		n.mu.Lock()
		isNew := !n.started[p.Metadata.UID]
		n.started[p.Metadata.UID] = true
		n.mu.Unlock()
		switch {
		case p.Metadata.DeletionTimestamp != "":
			n.call("DELETE", "/api/v1/namespaces/default/pods/"+p.Metadata.Name, "application/json",
				map[string]any{"gracePeriodSeconds": 0}, nil)
		case isNew:
			n.running.Go(func() { n.run(p) })
		}
	}
}

// run runs a pod. Of those of parts it kills some, and evicts some, while there is a plan for it.
func (n *node) run(p pod) {
	words := p.Spec.Containers[0].words()
	cmd := exec.Command(filepath.Join(bin, words[0]), words[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	finish := slices.Contains(words, "--finish")
	for _, e := range p.Spec.Containers[0].Env {
		value := e.Value
		if e.Name == "JOB_COMPLETION_INDEX" {
			value = p.Metadata.Annotations["batch.kubernetes.io/job-completion-index"]
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	n.status(p, map[string]any{"phase": "Running"})
	n.mu.Lock()
	kill := !finish && n.killed+n.evicted < 6 && n.random.IntN(4) > 0
	evict := kill && n.evicted < n.killed
	after := time.Duration(n.random.IntN(25)) * time.Millisecond
	n.mu.Unlock()
	must(n.t, cmd.Start())
	if kill {
		timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	var failed *exec.ExitError
	code := 0
	if errors.As(err, &failed) {
		if code = failed.ExitCode(); code < 0 {
			code = 128 + 9
		}
	}
	n.mu.Lock()
	status := map[string]any{"phase": "Succeeded"}
	switch {
	case code == 137 && evict:
		n.evicted++
		status = map[string]any{"phase": "Failed", "reason": "Evicted", "conditions": []any{map[string]any{
			"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}}}
	case code == 137:
		n.killed++
		status["phase"] = "Failed"
	case code != 0:
		n.incomplete++
		status["phase"] = "Failed"
	}
	n.mu.Unlock()
	status["containerStatuses"] = []any{map[string]any{"name": "ggforge", "image": "i", "imageID": "i", "ready": false,
		"restartCount": 0, "state": map[string]any{"terminated": map[string]any{"exitCode": code,
			"reason": fmt.Sprint("Exit ", code)}}}}
	n.status(p, status)
}

// status changes the status of a pod.
func (n *node) status(p pod, status map[string]any) {
	n.call("PATCH", "/api/v1/namespaces/default/pods/"+p.Metadata.Name+"/status", "application/strategic-merge-patch+json",
		map[string]any{"status": status}, nil)
}
