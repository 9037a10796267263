package cli_test

func (f *runningCommand) stderrText() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stderr.String()
}
