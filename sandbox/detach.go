package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
)

// A detached start exchanges JSON lines over the supervisor's standard input and output:
//
//	up         -> supervisor  the configuration
//	supervisor -> up          a supervisorReport, when ready or failed
//	up         -> supervisor  goAheadMessage, after the manifests are loaded
//
// If its input ends before goAheadMessage, the supervisor stops, because the starting process has died or
// failed. Afterwards the supervisor is independent.
const superviseVerb = "__supervise"

var goAheadMessage = []byte("\"go\"\n")

type supervisorReport struct {
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Error      string `json:"error,omitempty"`
}

// startDetached starts a sandbox with a supervisor that outlives this process, and prints the kubeconfig's
// path. If prepare fails, it stops the sandbox.
func startDetached(ctx context.Context, config controlplane.Config,
	prepare func(kubeconfig string) error) error {
	layout, err := controlplane.NewLayout(config.Dir)
	if err != nil {
		return err
	}
	config.Dir = layout.Dir
	if err := os.MkdirAll(layout.Dir, 0o700); err != nil {
		return err
	}
	supervisor, err := spawnSupervisor(layout)
	if err != nil {
		return err
	}
	defer supervisor.in.Close()
	if err := supervisor.send(config); err != nil {
		return err
	}
	report, err := supervisor.report(ctx)
	if errors.Is(err, errSilent) {
		return fmt.Errorf("%w; see %s", err, layout.SupervisorLog())
	}
	if err != nil {
		return err
	}
	if err := prepare(report.Kubeconfig); err != nil {
		supervisor.giveUp()
		return err
	}
	if _, err := supervisor.in.Write(goAheadMessage); err != nil {
		return err
	}
	fmt.Println(report.Kubeconfig)
	return nil
}

// supervisorProcess is the starting process's side of the exchange.
type supervisorProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.ReadCloser
}

// errSilent means that the supervisor died without a report. Its log has the cause.
var errSilent = errors.New("the supervisor ended without a report")

func spawnSupervisor(layout controlplane.Layout) (*supervisorProcess, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(layout.SupervisorLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the supervisor has its own descriptor
	cmd := exec.Command(executable, superviseVerb)
	cmd.Args[0] = os.Args[0] // shown in process lists
	cmd.Dir = "/"            // keeps no directory busy
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	return &supervisorProcess{cmd: cmd, in: in, out: out}, nil
}

func (s *supervisorProcess) send(message any) error {
	return json.NewEncoder(s.in).Encode(message)
}

// report waits for the supervisor's report. If ctx ends first, it closes the pipe, which makes the supervisor
// clean up, and waits for its end.
func (s *supervisorProcess) report(ctx context.Context) (supervisorReport, error) {
	defer context.AfterFunc(ctx, func() { s.in.Close() })()
	var report supervisorReport
	err := json.NewDecoder(s.out).Decode(&report)
	switch {
	case ctx.Err() != nil:
		s.giveUp()
		return report, errors.New("interrupted")
	case err != nil:
		return report, fmt.Errorf("%w (%v)", errSilent, s.cmd.Wait())
	case report.Error != "":
		_ = s.cmd.Wait() // it fails, as expected
		return report, errors.New(report.Error)
	default:
		return report, nil
	}
}

// giveUp makes the supervisor stop everything and waits for its end.
func (s *supervisorProcess) giveUp() {
	s.in.Close()
	_ = s.cmd.Wait()
}

func newSupervise() *cobra.Command {
	return &cobra.Command{
		Use:    superviseVerb,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return supervise(c.Context()) },
	}
}

// supervise is the supervisor's side of the exchange and its main function.
func supervise(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return err
	}
	var config controlplane.Config
	if err := json.Unmarshal(line, &config); err != nil {
		return err
	}
	go func() { // ends when the starting process sends goAheadMessage or ends
		if line, _ := input.ReadBytes('\n'); string(line) != string(goAheadMessage) {
			cancel()
		}
	}()
	cp, err := controlplane.Start(ctx, config)
	if err != nil {
		sendReport(supervisorReport{Error: err.Error()})
		return err
	}
	defer cp.Stop()
	sendReport(supervisorReport{Kubeconfig: cp.Layout().Kubeconfig()})
	select {
	case <-ctx.Done():
	case <-cp.StopRequested():
	}
	return nil
}

// sendReport sends the report. A dead reader is detected through standard input.
func sendReport(report supervisorReport) {
	_ = json.NewEncoder(os.Stdout).Encode(report)
	os.Stdout.Close()
}
