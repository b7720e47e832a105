/* A program that knows nothing of ringmain: says its arguments and environment, or waits for its
 * input's end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** words) {
  if (count > 1 && strcmp(words[1], "wait") == 0) {
    while (getchar() != EOF) {
    }
    return 0;
  }
  for (int i = 1; i < count; ++i) puts(words[i]);
  const char* value = getenv("PLAIN");
  puts(value == NULL ? "unset" : value);
  return 0;
}
