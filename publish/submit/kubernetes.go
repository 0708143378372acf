package submit

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
)

// Pods holds the settings of pods, for Kubernetes and what runs on it.
type Pods struct {
	// Image is an image with the commands; the Dockerfile of this project makes one. It must be set.
	Image string
	// Namespace of all objects, "" for the user's default.
	Namespace string
	// Claim is an existing claim of a volume that several nodes can write.
	Claim string
	// Mount is the path of the volume in the containers, "" for /work. It is the command's working directory.
	Mount string
	// User is the id of user and group that the command runs as, 0 for 65534. Root is not permitted.
	User int64
	// Secret is the name of a Secret with environment variables for the command, such as HF_TOKEN; "" for none.
	Secret string
}

// Kubernetes is a job for Kubernetes 1.33 or later: an Indexed Job, one index for each part, and a Job that finishes,
// over one volume. Without Claim and Storage there is no volume, and inputs and outputs have to be on servers.
type Kubernetes struct {
	Job
	Pods
	// Storage is the size in bytes of a volume to claim, of StorageClass ("" for the cluster's default), instead of
	// Claim.
	Storage      int64
	StorageClass string
	// Queue is the LocalQueue of Kueue that admits both Jobs, which are suspended until then; "" for no Kueue.
	Queue string
	// Wait is the longest time until the last Job has finished, parts included; 0 for 24 hours.
	Wait time.Duration
}

// Defaults of the fields of Kubernetes.
const (
	defaultMount = "/work"
	defaultUser  = int64(65534)
	defaultWait  = 24 * time.Hour
)

// text is a string of the user. It is written in double quotes, so that every YAML reader takes it for a string.
type text string

func (t text) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(t)}, nil
}

// object is a mapping in this order: a key, its value, and so on. A nil value is left out.
type object []any

func (o object) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(o); i += 2 {
		if o[i+1] == nil {
			continue
		}
		var key, value yaml.Node
		if err := key.Encode(o[i]); err != nil {
			return nil, err
		}
		if err := value.Encode(o[i+1]); err != nil {
			return nil, err
		}
		n.Content = append(n.Content, &key, &value)
	}
	return n, nil
}

// Manifest returns the YAML documents for kubectl create.
//
// A part whose pod is killed or has a read or write error is run again, at most Retries times; an evicted pod or a
// failed node does not count. A part whose exit code would be the same again is not repeated, and the others continue.
// In Kubernetes no Job can wait for another: the pod that finishes fails while parts are missing and is replaced, first
// soon, then every few minutes, until Wait is over.
func (k *Kubernetes) Manifest() ([]byte, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	if err := k.checkStrings(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	documents := []object{k.parts(), k.last()}
	if k.Storage > 0 {
		documents = append([]object{k.claim()}, documents...)
	}
	for _, d := range documents {
		if err := e.Encode(d); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), e.Close()
}

// checkStrings refuses strings that Kubernetes does not accept.
func (k *Kubernetes) checkStrings() error {
	switch {
	case k.Claim != "" && (k.Storage != 0 || k.StorageClass != ""):
		return fault.Errorf(fault.Usage, "claim %q and storage to claim: want only one of them", k.Claim)
	case k.Claim == "" && k.Storage == 0 && k.StorageClass != "":
		return fault.Errorf(fault.Usage, "storage of class %q: want its size", k.StorageClass)
	case k.Storage < 0:
		return fault.Errorf(fault.Usage, "storage of %d bytes: want a size above 0", k.Storage)
	case k.Wait < 0:
		return fault.Errorf(fault.Usage, "a wait of %v: want one above 0", k.Wait)
	}
	if err := k.checkPods(&k.Job); err != nil {
		return err
	}
	if k.Claim == "" && k.Storage == 0 {
		if err := k.onServers("or a volume for all pods, which is neither a claim nor a size of storage now"); err != nil {
			return err
		}
	}
	return isText("Kubernetes", k.StorageClass, k.Queue)
}

// checkPods refuses settings that Kubernetes does not accept.
func (p *Pods) checkPods(j *Job) error {
	switch {
	case p.Image == "":
		return fault.Errorf(fault.Usage, "no image: want the name of an image with the commands")
	case p.User < 0:
		return fault.Errorf(fault.Usage, "user %d: want one above 0", p.User)
	case p.Mount != "" && (!strings.HasPrefix(p.Mount, "/") || strings.Contains(p.Mount, ":")):
		return fault.Errorf(fault.Usage, "the volume at %q: want an absolute path without a colon", p.Mount)
	}
	return isText("Kubernetes", append([]string{p.Image, p.Namespace, p.Claim, p.Mount, p.Secret}, j.Command...)...)
}

// metadata returns the metadata of an object; kind ends its name.
func (k *Kubernetes) metadata(kind string) object {
	return object{"name", text(k.CleanName() + "-" + kind), "namespace", given(k.Namespace), "labels", k.labels(kind)}
}

// queued returns the metadata of a Job, with the label by which Kueue takes it. Kueue may admit the parts with fewer pods
// at the same time than they ask for, so that a quota that is smaller, or in use, is enough.
func (k *Kubernetes) queued(kind string) object {
	m := k.metadata(kind)
	if k.Queue == "" {
		return m
	}
	m[len(m)-1] = append(k.labels(kind), "kueue.x-k8s.io/queue-name", text(k.Queue))
	if kind == "parts" {
		m = append(m, "annotations", object{"kueue.x-k8s.io/job-min-parallelism", text("1")})
	}
	return m
}

// suspend returns the value of the field suspend of a Job: Kueue resumes it when it is admitted.
func (k *Kubernetes) suspend() any {
	if k.Queue == "" {
		return nil
	}
	return true
}

// labels returns the labels of an object, or pod, of a kind.
func (j *Job) labels(kind string) object {
	return object{"app.kubernetes.io/name", "ggforge", "app.kubernetes.io/instance", text(j.CleanName()),
		"app.kubernetes.io/component", kind}
}

// given returns s as text, nil if it is empty.
func given(s string) any {
	if s == "" {
		return nil
	}
	return text(s)
}

// claim returns the claim of the volume.
func (k *Kubernetes) claim() object {
	return object{"apiVersion", "v1", "kind", "PersistentVolumeClaim", "metadata", k.metadata("work"), "spec", object{
		"accessModes", []string{"ReadWriteMany"},
		"storageClassName", given(k.StorageClass),
		"resources", object{"requests", object{"storage", quantity(k.Storage)}},
	}}
}

// quantity returns bytes in the syntax of Kubernetes.
func quantity(bytes int64) text {
	return text(cmp.Or(inUnit(bytes, [4]string{"T", "G", "M", "k"}, [4]string{"Ti", "Gi", "Mi", "Ki"}),
		strconv.FormatInt(bytes, 10)))
}

// permanent has the exit codes that a retry would not change: usage, broken input, not supported, refused.
var permanent = []int{2, 3, 4, 5}

// parts returns the Job whose indexes are the parts.
func (k *Kubernetes) parts() object {
	at := k.Parts
	if k.AtOnce > 0 {
		at = min(at, k.AtOnce)
	}
	return object{"apiVersion", "batch/v1", "kind", "Job", "metadata", k.queued("parts"), "spec", object{
		"suspend", k.suspend(),
		"completionMode", "Indexed",
		"completions", k.Parts,
		"parallelism", at,
		"backoffLimitPerIndex", k.Retries,
		"podReplacementPolicy", "Failed", // never two pods with the same part
		"podFailurePolicy", policy("FailIndex", permanent),
		"template", k.pod("parts", k.Part()),
	}}
}

// last returns the Job that finishes.
func (k *Kubernetes) last() object {
	wait := k.Wait
	if wait == 0 {
		wait = defaultWait
	}
	return object{"apiVersion", "batch/v1", "kind", "Job", "metadata", k.queued("finish"), "spec", object{
		"suspend", k.suspend(),
		"backoffLimit", pods(wait),
		"activeDeadlineSeconds", units(wait, time.Second),
		"podReplacementPolicy", "Failed",
		"podFailurePolicy", policy("FailJob", permanent),
		"template", k.pod("finish", k.Finish()),
	}}
}

// pods returns the largest number of pods that Kubernetes creates in a time if all of them fail: it waits 10 seconds
// after the first, then twice as long each time, up to six minutes.
func pods(wait time.Duration) int64 {
	n := int64(1)
	for pause := 10 * time.Second; wait > 0 && pause < 6*time.Minute; pause *= 2 {
		wait -= pause
		n++
	}
	return n + units(max(wait, 0), 6*time.Minute)
}

// policy returns the policy for failed pods: evicted pods, and those of failed nodes, do not count as failures.
func policy(action string, codes []int) object {
	return object{"rules", []object{
		{"action", "Ignore", "onPodConditions", []object{{"type", "DisruptionTarget"}}},
		{"action", action, "onExitCodes", object{"containerName", container, "operator", "In", "values", codes}},
	}}
}

// container is the name of the only container of a pod.
const container = "ggforge"

// pod returns the template of the pods that run a command.
func (k *Kubernetes) pod(kind string, command []string) object {
	claim := k.Claim
	if k.Storage > 0 {
		claim = k.CleanName() + "-work"
	}
	var grace any
	if k.Grace > 0 {
		grace = units(k.Grace, time.Second)
	}
	c := append(object{"name", container}, k.container(&k.Job, claim != "", command)...)
	return object{"metadata", object{"labels", k.labels(kind)}, "spec", object{
		"restartPolicy", "Never",
		"terminationGracePeriodSeconds", grace,
		"automountServiceAccountToken", false,
		"securityContext", k.securityContext(),
		"containers", []object{c},
		"volumes", volumes(claim),
	}}
}

// securityContext returns that of a pod.
func (p *Pods) securityContext() object {
	user := cmp.Or(p.User, defaultUser)
	return object{
		"runAsNonRoot", true, "runAsUser", user, "runAsGroup", user, "fsGroup", user,
		"fsGroupChangePolicy", "OnRootMismatch",
		"seccompProfile", object{"type", "RuntimeDefault"},
	}
}

// volumes returns the volumes of a pod; claim is "" for none that pods share.
func volumes(claim string) []object {
	list := []object{{"name", "tmp", "emptyDir", object{}}}
	if claim != "" {
		list = append([]object{{"name", "work", "persistentVolumeClaim", object{"claimName", text(claim)}}}, list...)
	}
	return list
}

// container returns the container that runs a command, without its name.
func (p *Pods) container(j *Job, shared bool, command []string) object {
	words := make([]text, len(command))
	for i, w := range command {
		words[i] = text(strings.ReplaceAll(w, "$", "$$")) // Kubernetes would expand $(NAME)
	}
	var from any
	if p.Secret != "" {
		from = []object{{"secretRef", object{"name", text(p.Secret)}}}
	}
	mount := cmp.Or(p.Mount, defaultMount)
	dir, mounts := "/tmp", []object{{"name", "tmp", "mountPath", "/tmp"}}
	if shared {
		dir, mounts = mount, append([]object{{"name", "work", "mountPath", text(mount)}}, mounts...)
	}
	return object{
		"image", text(p.Image),
		"command", words,
		"workingDir", text(dir),
		"envFrom", from,
		"resources", j.resources(),
		"securityContext", object{
			"allowPrivilegeEscalation", false, "readOnlyRootFilesystem", true,
			"capabilities", object{"drop", []string{"ALL"}},
		},
		"volumeMounts", mounts,
	}
}

// resources returns equal requests and limits: the Go runtime takes the limit of CPUs for the number of workers.
func (j *Job) resources() any {
	var cpu, memory any
	if j.CPUs > 0 {
		cpu = text(strconv.Itoa(j.CPUs))
	}
	if j.Memory > 0 {
		memory = quantity(j.Memory)
	}
	if cpu == nil && memory == nil {
		return nil
	}
	both := object{"cpu", cpu, "memory", memory}
	return object{"requests", both, "limits", both}
}
