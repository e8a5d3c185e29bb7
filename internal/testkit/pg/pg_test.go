// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// panicVariable makes this test binary start a server, say where, and panic.
const panicVariable = "WEIR_PG_TEST_PANIC"

func TestMain(m *testing.M) {
	if os.Getenv(panicVariable) != "" {
		startAndPanic()
	}
	Main(m)
}

func startAndPanic() {
	s, err := Start(context.Background(), Options{})
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(s.folder + " " + strconv.Itoa(s.process.command.Process.Pid) + "\n")
	panic("as a test might")
}

func exec1(t *testing.T, dsn, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// eventually polls what happens in other processes, which send no signals here.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("never happened: " + what)
		case <-tick.C:
		}
	}
}

func gone(folder string, pid int) bool {
	_, err := os.Stat(folder)
	return errors.Is(err, os.ErrNotExist) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestStopLeavesNothing(t *testing.T) {
	s := New(t, Options{})
	pid := s.process.command.Process.Pid
	if gone(s.folder, pid) {
		t.Fatal("the server is not there at all")
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if !gone(s.folder, pid) {
		t.Errorf("folder %s or process %d is left", s.folder, pid)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestPanicLeavesNothing(t *testing.T) {
	Shared(t) // skips or fails where there is no PostgreSQL
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), panicVariable+"=1")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child said nothing: %v", err)
	}
	folder, number, _ := strings.Cut(strings.TrimSpace(line), " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil {
		t.Fatal("the child did not panic")
	}
	eventually(t, "server and folder of a panicked process go", func() bool { return gone(folder, pid) })
}

func TestRestartAndKillKeepCommittedData(t *testing.T) {
	s := New(t, Options{Durable: true})
	dsn := s.NewEmptyDatabase(t)
	exec1(t, dsn, "CREATE TABLE kept (n int)")
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec1(t, dsn, "INSERT INTO kept VALUES (1)")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), dsn); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec1(t, dsn, "INSERT INTO kept SELECT 1/count(*) FROM kept") // fails where nothing was kept
}

func TestDatabasesAreMigratedAndSeparate(t *testing.T) {
	s := Shared(t)
	one, other := s.NewDatabase(t), s.NewDatabase(t)
	exec1(t, one, "INSERT INTO cluster_user (id, namespace) VALUES ('a', 'a')")
	exec1(t, other, "INSERT INTO cluster_user (id, namespace) VALUES ('a', 'a')")
}

func TestStatementsAreCounted(t *testing.T) {
	s := New(t, Options{CountStatements: true})
	dsn := s.NewDatabase(t)
	database := dsn[strings.LastIndex(dsn, "/")+1 : strings.Index(dsn, "?")]
	if err := s.ResetStatements(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec1(t, dsn, "SELECT count(*) FROM operation")
	exec1(t, dsn, "SELECT count(*) FROM operation")
	counted, err := s.Statements(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	if len(counted) != 1 || counted[0].Calls != 2 {
		t.Errorf("counted %+v, want one statement with 2 calls", counted)
	}
}

func TestMissingBinariesSayWhatToDo(t *testing.T) {
	if got := majorVersion("/usr/lib/postgresql/15/bin"); got != 15 {
		t.Errorf("version of Debian's folder: %d", got)
	}
	if got := majorVersion("/opt/homebrew/opt/postgresql@17/bin"); got != 17 {
		t.Errorf("version of Homebrew's folder: %d", got)
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv(BinariesVariable, t.TempDir())
	if _, err := findBinaries(); err != nil && !strings.Contains(err.Error(), "hack/install-postgres.sh") {
		t.Errorf("does not say how to install: %v", err)
	}
}
